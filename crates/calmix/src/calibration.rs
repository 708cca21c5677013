//! Refits the calibration of a model on new labels: which labels it takes, and what it writes and prints.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_metrics::calibrator::any_calibrator::CalibratorKind;
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn, LabelsOrigin};
use calmix_metrics::held_out;
use calmix_run::model_info::{LONGEST_METADATA, ModelInfo};
use calmix_run::run::{Run, RunFile};
use serde_json::json;

use crate::args::calibrate::CalibrateArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::labelled::samples::{LabelledPredictions, only_subset};
use crate::labelled::trained_labels::TrainedLabels;
use crate::output::format::{counted, written_to};
use crate::output::{metric_table, run_files};
use crate::predict::input_kind::InputKind;
use crate::terminal::{print, print_json, warn};

/// The most classes that a message names.
const NAMED: usize = 20;

/// A calibration whose labels have been chosen.
#[derive(Debug)]
pub(crate) struct Calibration<'a> {
    args: &'a CalibrateArgs,
    path: &'a Path,
    kind: InputKind,
    labels: TrainedLabels,
    /// The samples that are used: the model was not trained on them.
    ids: Vec<u64>,
    origin: LabelsOrigin,
}

impl<'a> Calibration<'a> {
    /// Chooses the labels of `dataset`, which was read from `path`.
    ///
    /// # Errors
    /// If several subsets have labels or none has, or too few of the samples are new to the model.
    pub(crate) fn new(
        args: &'a CalibrateArgs,
        path: &'a Path,
        kind: InputKind,
        dataset: &Dataset,
    ) -> Result<Self> {
        let subset = match &args.subset {
            Some(subset) => subset.clone(),
            None => only_subset(path, dataset, kind)?,
        };
        let labels = TrainedLabels::find(&args.run, path, dataset, Some(&subset), kind)?;
        let ids = untrained(&labels, path, kind)?;
        let origin =
            LabelsOrigin { folder: path.display().to_string(), dataset: dataset.fingerprint().to_owned() };
        Ok(Self { args, path, kind, labels, ids, origin })
    }

    /// The samples to predict.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Fits the calibrator to the predictions on these labels, and writes it into the run's model.json.
    ///
    /// # Errors
    /// If there are too few labels, or the files of the run cannot be written.
    pub(crate) fn finish(self, info: &ModelInfo, later: &LabelledPredictions) -> Result<Exit> {
        let Self { args, path, kind, labels: compared, origin, .. } = self;
        let labels = later.predictions.labels.len();
        let least = CalibratorKind::Temperature.least_labels();
        if labels < least {
            let message = format!(
                "{}: only {}, and fitting a temperature needs at least {least}",
                shown(path.display()),
                counted(labels as u64, &format!("labelled {}", kind.word()))
            );
            let hint = format!("add labelled {}s; with 50 or more the fit is reliable", kind.word());
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let missing_classes = missing_classes(info, &later.predictions.labels);
        warn_about_labels(info, labels, &missing_classes);
        let map = FittedCalibrator::fit(&later.predictions, FittedOn::Later)?;
        let map = FittedCalibrator { origin: Some(origin), ..map };
        let held_out = held_out::cross_fitted(&later.predictions, &map, &[])?;
        let mut info = ModelInfo { calibration: Some(map.clone()), held_out: Some(held_out), ..info.clone() };
        info.seal()?;
        write(&args.run, &info)?;
        if args.json {
            let run = args.run.display().to_string();
            print_json(&json!({
                "run": run,
                "skipped": later.skipped,
                "checked_against_training": compared.is_checked(),
                "trained_on": compared.trained(),
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
        print(&format!("{}\n{written}\n{next}", metric_table::of_map(&map, kind)))?;
        Ok(Exit::Done)
    }
}

/// Replaces model.json, and keeps the previous one. A calibration that is already there, written by a process that was killed
/// afterwards or by the same command before, has no previous version but the one that is kept.
fn write(run: &Path, info: &ModelInfo) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(info)?;
    bytes.push(b'\n');
    let run = Run::open(run)?;
    let before = safe_open::read(&run.paths().file(RunFile::ModelInfo)?, LONGEST_METADATA)?;
    if before == bytes {
        return Ok(());
    }
    run.write(RunFile::PreviousModelInfo, &before)?;
    run.write(RunFile::ModelInfo, &bytes)?;
    Ok(())
}

/// Returns the samples that the model was not trained on, with a warning about the others; refuses too few.
fn untrained(labels: &TrainedLabels, path: &Path, kind: InputKind) -> Result<Vec<u64>, CliError> {
    let ids = labels.untrained();
    let Some(trained) = labels.sentence() else { return Ok(ids) };
    let word = kind.word();
    let least = CalibratorKind::Temperature.least_labels();
    if ids.len() >= least {
        warn(&format!(
            "{trained}; they are left out, because it is more confident on them than on new {word}s"
        ));
        return Ok(ids);
    }
    let place = shown(path.display());
    let left = match ids.len() {
        0 => format!("is more confident on them than on new {word}s"),
        left => format!("fitting a temperature needs at least {least} others, not {left}"),
    };
    let message = format!("{place}: {trained}, and {left}");
    let hint = format!("add labelled {word}s that the model was not trained on, with a label or without");
    Err(CliError::invalid(message).hint(hint))
}

/// Returns the classes of the model that have no label.
fn missing_classes(info: &ModelInfo, labels: &[u32]) -> Vec<String> {
    let labelled: BTreeSet<u32> = labels.iter().copied().collect();
    let classes = (0..).zip(&info.classes).filter(|(class, _)| !labelled.contains(class));
    classes.map(|(_, name)| name.clone()).collect()
}

/// Warns about labels that may fit a poorer calibrator than the previous one.
fn warn_about_labels(info: &ModelInfo, labels: usize, missing_classes: &[String]) {
    if !missing_classes.is_empty() {
        let named: Vec<_> = missing_classes.iter().take(NAMED).map(shown).collect();
        let more = if missing_classes.len() > NAMED { ", …" } else { "" };
        let classes = counted(missing_classes.len() as u64, "class");
        warn(&format!("no labels here for {classes} of the model: {}{more}", named.join(", ")));
    }
    let before = info.calibration.as_ref().map_or(0, |calibration| calibration.samples);
    if (labels as u64) < before {
        warn(&format!(
            "the calibration is refitted on {}, fewer than the {before} of the previous fit",
            counted(labels as u64, "label")
        ));
    }
}
