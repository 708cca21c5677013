//! `calmix calibrate` of a run on vectors, which needs no libtorch.

use std::path::Path;

use anyhow::Result;
use calmix_run::run::{Run, RunFile};

use super::calibrate_args::CalibrateArgs;
use super::data_args::existing_dataset;
use crate::calibration::Calibration;
use crate::exit::Exit;
use crate::labelled_samples::scratch_folder;
use crate::labelled_vectors;
use crate::launched::threads_of_process;
use crate::model_folder::with_model;
use crate::model_options::ModelOptions;
use crate::predict::input_kind::InputKind;
use crate::stop::{Stop, remove_scratch};
use crate::vector_model::VectorModel;

pub(super) fn run(args: &CalibrateArgs) -> Result<Exit> {
    let run = with_model(&args.run, "calibrate", &[])?;
    let path = std::path::absolute(existing_dataset(&args.on)?)?;
    let model = VectorModel::load(run, &ModelOptions { device: args.device, ..ModelOptions::default() })?;
    let stop = Stop::listen()?;
    let scratch = scratch_folder()?;
    let dataset = labelled_vectors::open(run, &model, &path, &args.reading, scratch.path(), &stop)?;
    let calibration = Calibration::new(args, &path, InputKind::Vector, &dataset)?;
    let threads = threads_of_process(args.threads, None);
    let calibrate = || -> Result<Option<Exit>> {
        let ids = calibration.ids();
        let Some(later) = labelled_vectors::predict(&model, &path, &dataset, ids, threads, &stop)? else {
            return Ok(None);
        };
        let exit = calibration.finish(model.rule().info(), &later)?;
        fold_again(run)?;
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
