//! `calmix calibrate` of a run on vectors, which needs no libtorch.

use std::path::Path;

use anyhow::Result;
use calmix_run::run::{Run, RunFile};

use super::calibrate_args::CalibrateArgs;
use super::data_args::existing_dataset;
use crate::calibration::Calibration;
use crate::exit::Exit;
use crate::labelled_vectors;
use crate::model_folder::with_model;
use crate::model_options::ModelOptions;
use crate::predict::input_kind::InputKind;
use crate::stop::Stop;
use crate::vector_model::VectorModel;

pub(super) fn run(args: &CalibrateArgs) -> Result<Exit> {
    let run = with_model(&args.run, "calibrate", &[])?;
    let path = std::path::absolute(existing_dataset(&args.on)?)?;
    let model = VectorModel::load(run, &ModelOptions { device: args.device, ..ModelOptions::default() })?;
    let stop = Stop::listen()?;
    let scratch = tempfile::tempdir()?;
    let dataset = labelled_vectors::open(run, &model, &path, &args.vectors, scratch.path(), &stop)?;
    let calibration = Calibration::new(args, &path, InputKind::Vector, &dataset)?;
    let subset = Some(calibration.subset());
    match labelled_vectors::predict(&model, &path, &dataset, subset, &stop)? {
        Some(later) => {
            let exit = calibration.finish(model.rule().info(), &later)?;
            fold_again(run)?;
            Ok(exit)
        }
        None => Ok(stop.exit()),
    }
}

/// Writes `head.safetensors` again: the temperature in it has changed.
fn fold_again(run: &Path) -> Result<()> {
    let model = VectorModel::load(run, &ModelOptions::default())?;
    if let Some(folded) = model.folded()? {
        Run::open(run)?.write(RunFile::FoldedHead, &folded)?;
    }
    Ok(())
}
