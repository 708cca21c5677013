//! `calmix calibrate`: refits the calibration of a model on new labels.

use std::path::Path;

use anyhow::Result;
use calmix_run::run::{Run, RunFile};

use crate::args::calibrate::CalibrateArgs;
use crate::args::options::data::existing_labelled;
use crate::calibration::Calibration;
use crate::error::exit::Exit;
use crate::labelled::samples::scratch_folder;
use crate::model::folder::{input_kind, with_model};
use crate::model::loaded_model::LoadedModel;
use crate::model::options::ModelOptions;
use crate::model::vector_model::VectorModel;
use crate::process::launched::threads_of_process;
use crate::process::stop::{Stop, remove_scratch};

pub(super) fn run(args: &CalibrateArgs) -> Result<Exit> {
    let run = with_model(&args.run, "calibrate", &[])?;
    let path = std::path::absolute(existing_labelled(&args.on, input_kind(run))?)?;
    let threads = threads_of_process(args.threads, None);
    let options =
        ModelOptions { device: args.device, threads: Some(threads.get()), ..ModelOptions::default() };
    let stop = Stop::listen()?;
    let Some(model) = LoadedModel::load(run, &options, &stop)? else { return Ok(stop.exit()) };
    let scratch = scratch_folder()?;
    let dataset = model.open_labelled(run, &path, &args.reading, scratch.path(), &stop)?;
    let calibration = Calibration::new(args, &path, model.kind(), &dataset)?;
    let calibrate = || -> Result<Option<Exit>> {
        let ids = calibration.ids();
        let Some(later) = model.predict_labelled(&path, dataset, ids, threads, &stop)? else {
            return Ok(None);
        };
        let exit = calibration.finish(model.rule().info(), &later)?;
        if let LoadedModel::Vectors(_) = model {
            fold_again(run)?;
        }
        Ok(Some(exit))
    };
    let exit = stop.ending_soon(|| remove_scratch(scratch.path()), calibrate)?;
    Ok(exit.unwrap_or_else(|| stop.exit()))
}

/// Writes `head.safetensors` again: the temperature in it has changed.
fn fold_again(run: &Path) -> Result<()> {
    let model = VectorModel::load(run, &ModelOptions::default())?;
    if let Some(folded) = model.folded()? {
        Run::open(run)?.write(RunFile::FoldedHead, &folded)?;
    }
    Ok(())
}
