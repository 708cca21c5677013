//! `calmix export` of a head on vectors.

use anyhow::Result;

use super::export_args::ExportArgs;
use crate::exit::Exit;
use crate::export::Exported;
use crate::export::example::{self, ExampleInput};
use crate::model_files::ModelFiles;
use crate::model_folder::with_model;
use crate::terminal::warn;
use crate::vector_model::VectorModel;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let options = args.options()?;
    let folder = with_model(&args.run, "export", &[])?;
    let model = VectorModel::load(folder, &options)?;
    for sentence in model.rule().guarantee().missing() {
        warn(&sentence);
    }
    let vectors = example::vectors(model.head());
    let logits = model.logits(&vectors)?;
    let files = ModelFiles::open(folder)?;
    let exported = Exported {
        run: folder,
        files: &files,
        rule: model.rule(),
        options: &options,
        input: ExampleInput::Vectors(&vectors, model.width()),
        logits: &logits,
    };
    exported.write(&args.to)?;
    Ok(Exit::Done)
}
