//! `calmix calibrate`: fits the calibration of a model again, on labels that came later.

use std::path::PathBuf;

use anyhow::Result;
use calmix::Model;
use calmix::core::calibration::confidence_map::MapKind;
use calmix::core::shown::shown;
use calmix::engine::device::Device;
use calmix::model::ModelOptions;
use calmix::run::calibration_map::{CalibrationMap, FittedOn, LabelsOrigin};
use calmix::run::held_out;
use calmix::run::model_info::ModelInfo;
use calmix::run::run::{Run, RunFile};
use clap::Args;
use serde_json::json;

use super::data_args::existing_folder;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::counted;
use crate::stop::Stop;
use crate::terminal::{print, print_json};
use crate::{figures, labelled_folder, run_files};

/// Fit the calibration of a finished run again, on labels that came later
///
/// Shows the labelled images of a folder to the model and fits the map that turns its outputs into confidences: a
/// temperature from 10 labels on, vector scaling from 100 and an isotonic map from 1,000 on where their cross-validated NLL is
/// clearly lower. Nothing is trained. Writes the map, where its labels come from, and what they say of sets and abstaining into model.json of the run, and prints the
/// figures of these labels before and after; each label is judged by a fit without it.
///
/// Classes are matched by name. Use images that the model was not trained on: it is too sure of those.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct CalibrateArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Labelled images: a folder for each class, a labels.csv, or WebDataset shards
    #[arg(long, value_name = "FOLDER")]
    on: PathBuf,
    /// Which subset of the images, such as val, if several have labels
    #[arg(long, value_name = "NAME")]
    subset: Option<String>,
    /// Device: cpu, cuda, cuda:1, mps [default: the fastest one]
    #[arg(long)]
    device: Option<Device>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  run          folder of the run
  skipped      corrupt images that were left out
  calibration  as in model.json: map, fitted_on, samples, rule, tried, changed_labels, origin,
               raw and calibrated (figures of these labels)";

impl CalibrateArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let folder = std::path::absolute(existing_folder(&self.on)?)?;
        let model = Model::load_with(
            existing_folder(&self.run)?,
            &ModelOptions { device: self.device, ..ModelOptions::default() },
        )?;
        let (stop, scratch) = (Stop::listen()?, tempfile::tempdir()?);
        let dataset = labelled_folder::open(&folder, scratch.path(), &stop)?;
        let subset = match self.subset {
            Some(subset) => subset,
            None => labelled_folder::only_subset(&folder, &dataset)?,
        };
        let origin =
            LabelsOrigin { folder: folder.display().to_string(), dataset: dataset.fingerprint().to_owned() };
        let Some(later) = labelled_folder::predict(&model, &folder, dataset, Some(&subset), &stop)? else {
            return Ok(stop.exit());
        };
        let (labels, least) = (later.predictions.labels.len(), MapKind::Temperature.least_labels());
        if labels < least {
            let message = format!(
                "{}: {} to calibrate with, and a temperature needs at least {least}",
                shown(folder.display()),
                counted(labels as u64, "labelled image")
            );
            return Err(CliError::invalid(message).hint("50 or more make it reliable").into());
        }
        let map = CalibrationMap::fit(&later.predictions, FittedOn::Later)?;
        let map = CalibrationMap { origin: Some(origin), ..map };
        let held_out = held_out::cross_fitted(&later.predictions, &map)?;
        let mut info =
            ModelInfo { calibration: Some(map.clone()), held_out: Some(held_out), ..model.info().clone() };
        info.seal()?;
        let mut bytes = serde_json::to_vec_pretty(&info)?;
        bytes.push(b'\n');
        Run::open(&self.run)?.write(RunFile::ModelInfo, &bytes)?;
        if self.json {
            let run = self.run.display().to_string();
            print_json(&json!({ "run": run, "skipped": later.skipped, "calibration": map }))?;
            return Ok(Exit::Done);
        }
        let next = run_files::next("evaluate", &self.run);
        let file = self.run.join("model.json");
        print(&format!("{}\nwritten to {}\n{next}", figures::of_map(&map), shown(file.display())))?;
        Ok(Exit::Done)
    }
}
