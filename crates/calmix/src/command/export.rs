//! `calmix export`: writes a model as files that other programs can run.

use anyhow::Result;

use crate::args::export::ExportArgs;
use crate::error::exit::Exit;
use crate::export::{self, Export, Purpose};
use crate::model::folder::with_model;
use crate::model::loaded_model::LoadedModel;
use crate::process::stop::Stop;
use crate::terminal::warn;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let options = args.options()?;
    let folder = with_model(&args.run, "export", &[])?;
    let stop = Stop::listen()?;
    let Some(model) = LoadedModel::load(folder, &options, &stop)? else { return Ok(stop.exit()) };
    for sentence in model.rule().guarantee().missing() {
        warn(&sentence);
    }
    let (input, logits) = model.example()?;
    let name = args.to.file_name().unwrap_or_default().to_string_lossy();
    let purpose = Purpose { mlflow: args.mlflow, hub: args.hub.then_some(args.licence.as_str()) };
    let rule = model.rule();
    let check = model.shift_check();
    let export = Export { name: &name, run: folder, rule, check, options: &options, purpose };
    export::write(&args.to, &export, (&input, &logits))?;
    Ok(Exit::Done)
}
