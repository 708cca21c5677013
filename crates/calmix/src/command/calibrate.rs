//! `calmix calibrate`: fits the calibration of a model again, on labels that came later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix::Model;
use calmix::data::dataset::Dataset;
use calmix::io::safe_open;
use calmix::io::shown::shown;
use calmix::metrics::calibrator::any_calibrator::CalibratorKind;
use calmix::metrics::fitted_calibrator::{FittedCalibrator, FittedOn, LabelsOrigin};
use calmix::metrics::held_out;
use calmix::model::ModelOptions;
use calmix::recipe::device::Device;
use calmix::run::model_info::{LONGEST_METADATA, ModelInfo};
use calmix::run::run::{Run, RunFile};
use calmix::train::trainer::trained_images;
use clap::Args;
use serde_json::json;

use super::data_args::existing_folder;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::counted;
use crate::model_folder::with_model;
use crate::stop::Stop;
use crate::terminal::{print, print_json, warn};
use crate::{labelled_folder, metrics, run_files};

/// Fit the calibration of a finished run again, on labels that came later
///
/// Shows the labelled images of a folder to the model and fits the map that turns its outputs into confidences: a
/// temperature from 10 labels on, vector scaling from 100 and an isotonic map from 1,000 on where their cross-validated NLL is
/// clearly lower. Nothing is trained. Writes the map, where its labels come from, and what they say of sets and abstaining into model.json of the run, and prints the
/// metrics of these labels before and after; each label is evaluated by a fit without it.
///
/// Classes are matched by name. Images that the model was trained on, with labels or without, are refused: it is too sure of
/// those. model.json as it was before is kept in model.previous.json; rename it to go back.
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

/// Classes that a message names.
const NAMED: usize = 20;

const FIELDS: &str = "\
Fields of --json:
  run          folder of the run
  skipped      corrupt images that were left out
  checked_against_training
               whether the images were compared with those that the run was trained on
  missing_classes
               classes of the model that have no label here
  calibration  as in model.json: map, fitted_on, samples, rule, tried, changed_labels, origin,
               raw and calibrated (metrics of these labels)";

impl CalibrateArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let folder = std::path::absolute(existing_folder(&self.on)?)?;
        let model = Model::load_with(
            with_model(&self.run, "calibrate", &[])?,
            &ModelOptions { device: self.device, ..ModelOptions::default() },
        )?;
        let (stop, scratch) = (Stop::listen()?, tempfile::tempdir()?);
        let dataset = labelled_folder::open(&model, &folder, scratch.path(), &stop)?;
        let subset = match self.subset {
            Some(subset) => subset,
            None => labelled_folder::only_subset(&folder, &dataset)?,
        };
        let is_checked = refuse_trained_images(&self.run, &folder, &dataset, &subset)?;
        let origin =
            LabelsOrigin { folder: folder.display().to_string(), dataset: dataset.fingerprint().to_owned() };
        let Some(later) = labelled_folder::predict(&model, &folder, dataset, Some(&subset), &stop)? else {
            return Ok(stop.exit());
        };
        let (labels, least) = (later.predictions.labels.len(), CalibratorKind::Temperature.least_labels());
        if labels < least {
            let message = format!(
                "{}: {} to calibrate with, and a temperature needs at least {least}",
                shown(folder.display()),
                counted(labels as u64, "labelled image")
            );
            return Err(CliError::invalid(message).hint("50 or more make it reliable").into());
        }
        let missing_classes = missing_classes(&model, &later.predictions.labels);
        warn_about_labels(&model, labels, &missing_classes);
        let map = FittedCalibrator::fit(&later.predictions, FittedOn::Later)?;
        let map = FittedCalibrator { origin: Some(origin), ..map };
        let held_out = held_out::cross_fitted(&later.predictions, &map)?;
        let mut info =
            ModelInfo { calibration: Some(map.clone()), held_out: Some(held_out), ..model.info().clone() };
        info.seal()?;
        let mut bytes = serde_json::to_vec_pretty(&info)?;
        bytes.push(b'\n');
        let run = Run::open(&self.run)?;
        let before = safe_open::read(&run.paths().file(RunFile::ModelInfo)?, LONGEST_METADATA)?;
        run.write(RunFile::PreviousModelInfo, &before)?;
        run.write(RunFile::ModelInfo, &bytes)?;
        if self.json {
            let run = self.run.display().to_string();
            print_json(&json!({
                "run": run,
                "skipped": later.skipped,
                "checked_against_training": is_checked,
                "missing_classes": missing_classes,
                "calibration": map,
            }))?;
            return Ok(Exit::Done);
        }
        let next = run_files::next("evaluate", &self.run);
        let file = self.run.join("model.json");
        let previous = self.run.join("model.previous.json");
        print(&format!(
            "{}\nwritten to {}; as it was before: {}\n{next}",
            metrics::of_map(&map),
            shown(file.display()),
            shown(previous.display())
        ))?;
        Ok(Exit::Done)
    }
}

/// Refuses images that the run was trained on. Returns whether that could be checked.
fn refuse_trained_images(run: &Path, folder: &Path, dataset: &Dataset, subset: &str) -> Result<bool> {
    let mut labelled = Vec::new();
    for record in dataset.records(dataset.subset(subset)?) {
        let (id, record) = record?;
        labelled.extend(record.class().map(|_| id));
    }
    let trained = match trained_images(run, dataset, &labelled) {
        Ok(trained) => trained,
        Err(error) => {
            warn(&format!("whether the model was trained on these images could not be checked: {error}"));
            return Ok(false);
        }
    };
    let Some(&first) = trained.first() else { return Ok(true) };
    let message = format!(
        "{}: the model was trained on {} of {}, such as {}; it is more confident of them than of new images",
        shown(folder.display()),
        trained.len(),
        counted(labelled.len() as u64, "labelled image"),
        shown(dataset.sample_name(first)?)
    );
    let hint = "leave out the images that the model was trained on, with labels or without";
    Err(CliError::invalid(message).hint(hint).into())
}

/// The classes of the model that have no label.
fn missing_classes(model: &Model, labels: &[u32]) -> Vec<String> {
    let labelled: BTreeSet<u32> = labels.iter().copied().collect();
    let classes = (0..).zip(model.classes()).filter(|(class, _)| !labelled.contains(class));
    classes.map(|(_, name)| name.clone()).collect()
}

/// Warns about labels that make a poorer calibration than the one before.
fn warn_about_labels(model: &Model, labels: usize, missing_classes: &[String]) {
    if !missing_classes.is_empty() {
        let named: Vec<_> = missing_classes.iter().take(NAMED).map(shown).collect();
        let more = if missing_classes.len() > NAMED { ", …" } else { "" };
        let classes = counted(missing_classes.len() as u64, "class");
        warn(&format!("{classes} of the model without a label here: {}{more}", named.join(", ")));
    }
    let before = model.info().calibration.as_ref().map_or(0, |calibration| calibration.samples);
    if (labels as u64) < before {
        warn(&format!(
            "{}, fewer than the {before} that fitted the calibration before",
            counted(labels as u64, "label")
        ));
    }
}
