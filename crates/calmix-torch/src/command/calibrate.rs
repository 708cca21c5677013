//! `calmix calibrate`: refits the calibration of a model on new labels.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use calmix::command::calibrate_args::CalibrateArgs;
use calmix::command::data_args::existing_folder;
use calmix::data::dataset::Dataset;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::{counted, written_to};
use calmix::io::safe_open;
use calmix::io::shown::shown;
use calmix::metrics::calibrator::any_calibrator::CalibratorKind;
use calmix::metrics::fitted_calibrator::{FittedCalibrator, FittedOn, LabelsOrigin};
use calmix::metrics::held_out;
use calmix::model_folder::with_model;
use calmix::run::model_info::{LONGEST_METADATA, ModelInfo};
use calmix::run::run::{Run, RunFile};
use calmix::stop::Stop;
use calmix::terminal::{print, print_json, warn};
use calmix::{metric_table, run_files};
use calmix_train::trainer::trained_images;
use serde_json::json;

use crate::labelled_folder;
use crate::model::{Model, ModelOptions};

/// The most classes that a message names.
const NAMED: usize = 20;

pub(crate) fn run(args: CalibrateArgs) -> Result<Exit> {
    let folder = std::path::absolute(existing_folder(&args.on)?)?;
    let model = Model::load_with(
        with_model(&args.run, "calibrate", &[])?,
        &ModelOptions { device: args.device, ..ModelOptions::default() },
    )?;
    let (stop, scratch) = (Stop::listen()?, tempfile::tempdir()?);
    let dataset = labelled_folder::open(&model, &folder, scratch.path(), &stop)?;
    let subset = match args.subset {
        Some(subset) => subset,
        None => labelled_folder::only_subset(&folder, &dataset)?,
    };
    let is_checked = refuse_trained_images(&args.run, &folder, &dataset, &subset)?;
    let origin =
        LabelsOrigin { folder: folder.display().to_string(), dataset: dataset.fingerprint().to_owned() };
    let Some(later) = labelled_folder::predict(&model, &folder, dataset, Some(&subset), &stop)? else {
        return Ok(stop.exit());
    };
    let (labels, least) = (later.predictions.labels.len(), CalibratorKind::Temperature.least_labels());
    if labels < least {
        let message = format!(
            "{}: only {}, and fitting a temperature needs at least {least}",
            shown(folder.display()),
            counted(labels as u64, "labelled image")
        );
        return Err(CliError::invalid(message)
            .hint("add labelled images; with 50 or more the fit is reliable")
            .into());
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
    let run = Run::open(&args.run)?;
    let before = safe_open::read(&run.paths().file(RunFile::ModelInfo)?, LONGEST_METADATA)?;
    run.write(RunFile::PreviousModelInfo, &before)?;
    run.write(RunFile::ModelInfo, &bytes)?;
    if args.json {
        let run = args.run.display().to_string();
        print_json(&json!({
            "run": run,
            "skipped": later.skipped,
            "checked_against_training": is_checked,
            "missing_classes": missing_classes,
            "calibration": map,
        }))?;
        return Ok(Exit::Done);
    }
    let next = run_files::next("evaluate", &args.run);
    let file = args.run.join("model.json");
    let previous = args.run.join("model.previous.json");
    let previous = format!("; the previous version is in {}", shown(previous.display()));
    let written = written_to(&shown(file.display()), &previous);
    print(&format!("{}\n{written}\n{next}", metric_table::of_map(&map)))?;
    Ok(Exit::Done)
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
            warn(&format!("cannot check whether the model was trained on these images: {error}"));
            return Ok(false);
        }
    };
    let Some(&first) = trained.first() else { return Ok(true) };
    let message = format!(
        "{}: the model was trained on {} of {}, such as {}, and is more confident on them than on new images",
        shown(folder.display()),
        trained.len(),
        counted(labelled.len() as u64, "labelled image"),
        shown(dataset.sample_name(first)?)
    );
    let hint = "leave out the images that the model was trained on, labelled or not";
    Err(CliError::invalid(message).hint(hint).into())
}

/// Returns the classes of the model that have no label.
fn missing_classes(model: &Model, labels: &[u32]) -> Vec<String> {
    let labelled: BTreeSet<u32> = labels.iter().copied().collect();
    let classes = (0..).zip(model.classes()).filter(|(class, _)| !labelled.contains(class));
    classes.map(|(_, name)| name.clone()).collect()
}

/// Warns about labels that may fit a poorer calibrator than the previous one.
fn warn_about_labels(model: &Model, labels: usize, missing_classes: &[String]) {
    if !missing_classes.is_empty() {
        let named: Vec<_> = missing_classes.iter().take(NAMED).map(shown).collect();
        let more = if missing_classes.len() > NAMED { ", …" } else { "" };
        let classes = counted(missing_classes.len() as u64, "class");
        warn(&format!("no labels here for {classes} of the model: {}{more}", named.join(", ")));
    }
    let before = model.info().calibration.as_ref().map_or(0, |calibration| calibration.samples);
    if (labels as u64) < before {
        warn(&format!(
            "the calibration is refitted on {}, fewer than the {before} of the previous fit",
            counted(labels as u64, "label")
        ));
    }
}
