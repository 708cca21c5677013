//! `calmix calibrate`: refits the calibration of a model on new labels.

use anyhow::Result;
use calmix::calibration::Calibration;
use calmix::command::calibrate_args::CalibrateArgs;
use calmix::command::data_args::existing_folder;
use calmix::exit::Exit;
use calmix::labelled_samples::scratch_folder;
use calmix::launched::threads_of_process;
use calmix::model_folder::with_model;
use calmix::predict::input_kind::InputKind;
use calmix::stop::{Stop, remove_scratch};

use crate::labelled_folder;
use crate::model::{Model, ModelOptions};

pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit> {
    let run = with_model(&args.run, "calibrate", &[])?;
    let folder = std::path::absolute(existing_folder(&args.on)?)?;
    let threads = threads_of_process(args.threads, None);
    let options =
        ModelOptions { device: args.device, threads: Some(threads.get()), ..ModelOptions::default() };
    let model = Model::load_with(run, &options)?;
    let stop = Stop::listen()?;
    let scratch = scratch_folder()?;
    let dataset = labelled_folder::open(&model, &folder, &args.reading, scratch.path(), &stop)?;
    let calibration = Calibration::new(args, &folder, InputKind::Image, &dataset)?;
    let calibrate = || -> Result<Option<Exit>> {
        match labelled_folder::predict(&model, &folder, dataset, calibration.ids(), threads, &stop)? {
            Some(later) => calibration.finish(model.info(), &later).map(Some),
            None => Ok(None),
        }
    };
    let exit = stop.ending_soon(|| remove_scratch(scratch.path()), calibrate)?;
    Ok(exit.unwrap_or_else(|| stop.exit()))
}
