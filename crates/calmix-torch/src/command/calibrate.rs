//! `calmix calibrate`: refits the calibration of a model on new labels.

use anyhow::Result;
use calmix::calibration::Calibration;
use calmix::command::calibrate_args::CalibrateArgs;
use calmix::command::data_args::existing_folder;
use calmix::exit::Exit;
use calmix::model_folder::with_model;
use calmix::predict::input_kind::InputKind;
use calmix::stop::Stop;

use crate::labelled_folder;
use crate::model::{Model, ModelOptions};

pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit> {
    args.vectors.refuse_for_images()?;
    let folder = std::path::absolute(existing_folder(&args.on)?)?;
    let model = Model::load_with(
        with_model(&args.run, "calibrate", &[])?,
        &ModelOptions { device: args.device, ..ModelOptions::default() },
    )?;
    let stop = Stop::listen()?;
    let scratch = tempfile::tempdir()?;
    let dataset = labelled_folder::open(&model, &folder, scratch.path(), &stop)?;
    let calibration = Calibration::new(args, &folder, InputKind::Image, &dataset)?;
    let subset = Some(calibration.subset());
    match labelled_folder::predict(&model, &folder, dataset, subset, &stop)? {
        Some(later) => calibration.finish(model.info(), &later),
        None => Ok(stop.exit()),
    }
}
