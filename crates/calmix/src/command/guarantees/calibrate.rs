//! `calmix calibrate`: refits the calibration of a model on new labels.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_metrics::calibrator::CalibratorKind;
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn, LabelsOrigin};
use calmix_metrics::held_out;
use calmix_metrics::shift::Reference;
use calmix_run::label_draws::LabelDraws;
use calmix_run::model_info::{MAX_METADATA_BYTES, ModelInfo};
use calmix_run::run::{Run, RunFile};
use calmix_run::tensor_files::reference_file;
use serde_json::json;

use crate::args::guarantees::calibrate::CalibrateArgs;
use crate::args::options::data::existing_labelled;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::labelled::{LabelledPredictions, TrainedLabels, only_subset, scratch_folder};
use crate::model::folder::{input_kind, with_model};
use crate::model::loaded_model::LoadedModel;
use crate::model::options::ModelOptions;
use crate::model::vector_model::VectorModel;
use crate::output::format::{class_list, counted, written_to};
use crate::output::{metric_table, run_files};
use crate::predict::input::InputKind;
use crate::process::launched::threads_of_process;
use crate::process::stop::{Stop, remove_scratch};
use crate::terminal::{print, print_json, warn};

pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit> {
    let run = with_model(&args.run, "calibrate", &[])?;
    let path = std::path::absolute(existing_labelled(&args.on, input_kind(run))?)?;
    let threads = threads_of_process(args.threads, None);
    let options =
        ModelOptions { device: args.device, threads: Some(threads.get()), ..ModelOptions::default() };
    let stop = Stop::listen()?;
    let Some(model) = LoadedModel::load(run, &options, &stop)? else { return Ok(stop.exit()) };
    let scratch = scratch_folder()?;
    let dataset = model.open_labelled(run, &path, &args.reading, scratch.path(), &stop)?;
    let subset = match &args.subset {
        Some(subset) => subset.clone(),
        None => only_subset(&path, &dataset, model.kind())?,
    };
    let labels = TrainedLabels::find(&args.run, &path, &dataset, Some(&subset), model.kind())?;
    let ids = untrained(&labels, &path, model.kind())?;
    let origin =
        LabelsOrigin { folder: path.display().to_string(), dataset: dataset.fingerprint().to_owned() };
    let calibrate = || -> Result<bool> {
        let Some(found) = model.predict_labelled(&path, dataset, &ids, threads, &stop)? else {
            return Ok(false);
        };
        refit(args, &path, &model, &labels, origin, &found)?;
        if let LoadedModel::Vectors(_) = model {
            rewrite_folded_head(run)?;
        }
        Ok(true)
    };
    let is_done = stop.ending_soon(|| remove_scratch(scratch.path()), calibrate)?;
    Ok(if is_done { Exit::Done } else { stop.exit() })
}

/// Writes `head.safetensors` again: the temperature in it has changed.
fn rewrite_folded_head(run: &Path) -> Result<()> {
    let model = VectorModel::load(run, &ModelOptions::default())?;
    if let Some(folded) = model.folded()? {
        Run::open(run)?.write(RunFile::FoldedHead, &folded)?;
    }
    Ok(())
}

/// Fits the calibrator to the predictions on new labels, writes it into the run's model.json, and prints its metrics. Refuses too
/// few labels.
fn refit(
    args: &CalibrateArgs,
    path: &Path,
    model: &LoadedModel,
    compared: &TrainedLabels,
    origin: LabelsOrigin,
    found: &LabelledPredictions,
) -> Result<()> {
    let kind = model.kind();
    let info = model.rule().info();
    let labels = found.predictions.labels.len();
    let min_labels = CalibratorKind::Temperature.min_labels();
    if labels < min_labels {
        let message = format!(
            "{}: only {}, and fitting a temperature needs at least {min_labels}",
            shown(path.display()),
            counted(labels as u64, &format!("labelled {}", kind.word()))
        );
        let hint = format!("add labelled {}s; with 50 or more the fit is reliable", kind.word());
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let missing_classes = missing_classes(info, &found.predictions.labels);
    warn_about_labels(info, labels, &missing_classes);
    let map = FittedCalibrator::fit(&found.predictions, FittedOn::Later, &|| false)?;
    let map = FittedCalibrator { origin: Some(origin), ..map };
    let (held_out, labels) =
        held_out::score_with_logits_cross_fitted(&found.predictions, &map, &[], &|| false)?;
    let reference = Reference { labels, features: model.shift_check().features().cloned() };
    let reference = reference_file::to_bytes(&reference)
        .map_err(|problem| FileError::new("reference.safetensors", problem))?;
    let mut info = ModelInfo {
        calibration: Some(map.clone()),
        held_out: Some(held_out),
        reference: reference.as_deref().map(ModelInfo::hash).unwrap_or_default(),
        label_draws: LabelDraws::default(),
        ..info.clone()
    };
    info.seal()?;
    write(&args.run, &info, reference.as_deref())?;
    if args.json {
        let run = args.run.display().to_string();
        return print_json(&json!({
            "run": run,
            "skipped": found.skipped,
            "checked_against_training": compared.is_checked(),
            "trained_on": compared.trained(),
            "missing_classes": missing_classes,
            "calibration": map,
        }));
    }
    let next = run_files::next("evaluate", &args.run);
    let file = args.run.join("model.json");
    let previous = args.run.join("model.previous.json");
    let previous = format!("; the previous version is in {}", shown(previous.display()));
    let written = written_to(&shown(file.display()), &previous);
    print(&format!("{}\n{written}\n{next}", metric_table::calibration_table(&map, kind)))
}

/// Replaces model.json, and keeps the previous version. If the file already has this calibration, written by the same command
/// or by a process that was killed afterwards, nothing is written, so that the version before it stays.
fn write(run: &Path, info: &ModelInfo, reference: Option<&[u8]>) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(info)?;
    bytes.push(b'\n');
    let run = Run::open(run)?;
    let before = safe_open::read(&run.paths().file(RunFile::ModelInfo)?, MAX_METADATA_BYTES)?;
    if before == bytes {
        return Ok(());
    }
    run.write(RunFile::PreviousModelInfo, &before)?;
    // First the file that the new model.json describes: with the old one, a kill between them leaves samples uncompared.
    if let Some(reference) = reference {
        run.write(RunFile::Reference, reference)?;
    }
    run.write(RunFile::ModelInfo, &bytes)?;
    Ok(())
}

/// Returns the samples that the model was not trained on, and warns about the others; refuses too few.
fn untrained(labels: &TrainedLabels, path: &Path, kind: InputKind) -> Result<Vec<u64>, CliError> {
    let ids = labels.untrained();
    let Some(trained) = labels.sentence() else { return Ok(ids) };
    let word = kind.word();
    let min_labels = CalibratorKind::Temperature.min_labels();
    if ids.len() >= min_labels {
        warn(&format!(
            "{trained}; they are left out, because it is more confident on them than on new {word}s"
        ));
        return Ok(ids);
    }
    let place = shown(path.display());
    let left = match ids.len() {
        0 => format!("is more confident on them than on new {word}s"),
        left => format!("fitting a temperature needs at least {min_labels} others, not {left}"),
    };
    let message = format!("{place}: {trained}, and {left}");
    let hint = format!("add labelled {word}s that the model was not trained on, with a label or without");
    Err(CliError::invalid(message).hint(hint))
}

/// Returns the classes of the model without a label.
fn missing_classes(info: &ModelInfo, labels: &[u32]) -> Vec<String> {
    let labelled: BTreeSet<u32> = labels.iter().copied().collect();
    let classes = (0..).zip(&info.classes).filter(|(class, _)| !labelled.contains(class));
    classes.map(|(_, name)| name.clone()).collect()
}

/// Warns about labels that may give a poorer calibrator than the previous one.
fn warn_about_labels(info: &ModelInfo, labels: usize, missing_classes: &[String]) {
    if !missing_classes.is_empty() {
        let classes = counted(missing_classes.len() as u64, "class");
        warn(&format!("no labels here for {classes} of the model: {}", class_list(missing_classes)));
    }
    let before = info.calibration.as_ref().map_or(0, |calibration| calibration.samples);
    if (labels as u64) < before {
        warn(&format!(
            "the calibration is refitted on {}, fewer than the {before} of the previous fit",
            counted(labels as u64, "label")
        ));
    }
}
