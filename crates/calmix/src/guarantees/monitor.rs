//! The outputs of a model over time, compared with the reference of its run.

use std::path::Path;

use anyhow::Result;
use calmix_data::source::vectors::label_list::LabelList;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::predicted::read_predicted_labels;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_io::shown::{escaped, shown};
use calmix_metrics::shift::sums::{ONE, P_BINS};
use calmix_metrics::shift::{BatchSums, Change, ShiftAlarm, ShiftDetector};
use calmix_metrics::stats::anytime_bound::ErrorBound;
use calmix_report::monitoring::{ChangeKind, LabelledError, MonitoredBatch, Monitoring};
use calmix_run::model_info::ModelInfo;
use calmix_run::run::RunFile;
use calmix_run::tensor_files::reference_file::{self, MAX_REFERENCE_BYTES};
use serde::Deserialize;
use serde_json::Value;

use crate::args::guarantees::monitor::MonitorArgs;
use crate::error::CliError;
use crate::model::files::ModelFiles;
use crate::predict::batch_verdict::BatchVerdict;
use crate::predict::out_path::beside;
use crate::predict::output::MAX_NOTE_BYTES;
use crate::predict::sums_journal::SavedSums;

/// The bins of p-values that are strange: a twentieth of the reference.
const STRANGE_BINS: usize = P_BINS / 20;

/// The probability with which each bound on the error may fail.
const DELTA: f64 = 0.05;

/// What the sidecar of an output says about its rows.
#[derive(Debug, Deserialize)]
struct OutputNote {
    model: Option<String>,
    sums: Option<SavedSums>,
    verdict: Option<BatchVerdict>,
}

/// Compares the outputs with the reference of the run, one after the other.
pub(crate) fn monitor(args: &MonitorArgs) -> Result<Monitoring> {
    let files = ModelFiles::open(&args.run)?;
    let info = files.info();
    let (detector, not_compared) = match detector(&files)? {
        Ok(detector) => (Some(detector), None),
        Err(why) => (None, Some(why.to_owned())),
    };
    let mut watch = detector.as_ref().map(ShiftAlarm::new).transpose()?.flatten();
    let mut batches = Vec::with_capacity(args.outputs.len());
    let mut alarm = None;
    for output in &args.outputs {
        let note = read_note(output, info)?;
        let Some(SavedSums { sums, .. }) = note.sums else { return Err(without_sums(output).into()) };
        check(&sums, info, detector.as_ref(), output)?;
        if let Some(watch) = watch.as_mut() {
            watch.update(&sums)?;
            if watch.is_alarm() && alarm.is_none() {
                alarm = Some((batches.len() + 1, watch.change()));
            }
        }
        batches.push(batch(output, &sums, note.verdict.as_ref(), watch.as_ref()));
    }
    let labelled = args.labels.as_ref().map(|labels| labelled_error(args, labels)).transpose()?;
    let run = args.run.display().to_string();
    let changed = alarm.map(|(_, change)| match change {
        Change::Rows => ChangeKind::Rows,
        Change::Mean => ChangeKind::Mean,
    });
    let alarm = alarm.map(|(batch, _)| batch);
    Ok(Monitoring { run, classes: info.classes.clone(), batches, alarm, changed, not_compared, labelled })
}

/// Reads the reference of a run that keeps features, or returns why there is none.
fn detector(files: &ModelFiles) -> Result<Result<ShiftDetector, &'static str>> {
    let info = files.info();
    if info.reference.is_empty() {
        return Ok(Err("the run kept no reference; runs of earlier versions do not"));
    }
    let path = files.path(RunFile::Reference)?;
    if !safe_open::exists(&path) {
        return Ok(Err("reference.safetensors is missing; copy it from the folder of the run"));
    }
    let bytes = safe_open::read(&path, MAX_REFERENCE_BYTES)?;
    if ModelInfo::hash(&bytes) != info.reference {
        return Ok(Err("reference.safetensors is not the file that model.json describes"));
    }
    let detector = reference_file::from_bytes(&bytes, info.classes.len(), None);
    let detector: ShiftDetector = detector.map_err(|problem| FileError::new(&path, problem))?;
    if !detector.compares_features() {
        return Ok(Err("the run kept too few unlabelled samples for a reference"));
    }
    Ok(Ok(detector))
}

/// Reads what the sidecar of an output says, and checks that its model is this one.
fn read_note(output: &Path, info: &ModelInfo) -> Result<OutputNote> {
    let path = beside(output, ".predict.json");
    if !safe_open::exists(&path) {
        let message = format!("{}: there is no {} beside it", shown(output.display()), shown(path.display()));
        let hint = "name outputs that `calmix predict --out` wrote, with their files beside them";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let bytes = safe_open::read(&path, MAX_NOTE_BYTES)?;
    let note = serde_json::from_slice::<Value>(&bytes).and_then(OutputNote::deserialize);
    let note = note.map_err(|error| {
        let message = format!("{}: not a note of `calmix predict`: {error}", shown(path.display()));
        CliError::invalid(message).hint("predict it again")
    })?;
    if note.model.as_deref() != Some(info.blake3.as_str()) {
        let message = format!("{}: another model predicted it", shown(output.display()));
        let hint =
            "name the run that predicted it; batches of two models cannot be compared with one reference";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    Ok(note)
}

fn without_sums(output: &Path) -> CliError {
    let message = format!(
        "{}: its {} has no sums",
        shown(output.display()),
        shown(beside(output, ".predict.json").display())
    );
    CliError::invalid(message)
        .hint("finish it with `calmix predict --resume`, or predict it again with this version")
}

/// Refuses sums that contradict themselves, which a file may.
fn check(sums: &BatchSums, info: &ModelInfo, detector: Option<&ShiftDetector>, output: &Path) -> Result<()> {
    let rows = |counts: &[u64]| counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
    let classes = info.classes.len();
    let is_counted = sums.p_values.is_empty()
        || (sums.p_values.len() == P_BINS && rows(&sums.p_values) == Some(sums.rows));
    let is_sound = is_counted
        && detector.is_none_or(|detector| detector.new_sums().has_shape_of(sums))
        && sums.rows <= MAX_ROWS
        && [sums.probabilities.len(), sums.predicted.len()] == [classes; 2]
        && rows(&sums.predicted) == Some(sums.rows);
    if is_sound {
        return Ok(());
    }
    let path = beside(output, ".predict.json");
    let message = format!("{}: its sums contradict each other", shown(path.display()));
    Err(CliError::invalid(message).hint("predict it again").into())
}

/// The largest number of rows of a batch, whose scores are in memory.
const MAX_ROWS: u64 = 100_000_000;

fn batch(
    output: &Path,
    sums: &BatchSums,
    verdict: Option<&BatchVerdict>,
    watch: Option<&ShiftAlarm>,
) -> MonitoredBatch {
    let rows = sums.rows as f64;
    let mean = |sum: i64| sum as f64 / ONE / rows;
    let has_rows = sums.rows > 0;
    let strange: u64 = sums.p_values.iter().take(STRANGE_BINS).sum();
    let log10 = |ln: f64| ln / std::f64::consts::LN_10;
    MonitoredBatch {
        output: output.display().to_string(),
        rows: sums.rows,
        estimated_error: has_rows.then(|| 1.0 - mean(sums.confidence)),
        mix: if has_rows { sums.probabilities.iter().map(|&sum| mean(sum)).collect() } else { Vec::new() },
        verdict: verdict
            .and_then(|verdict| serde_json::to_value(verdict.verdict).ok()?.as_str().map(str::to_owned)),
        strange: (has_rows && !sums.p_values.is_empty()).then(|| strange as f64 / rows),
        log10_capital: watch.map(|watch| log10(watch.ln_capital())),
        log10_highest: watch.map(|watch| log10(watch.ln_highest())),
    }
}

/// Compares the predictions of labelled rows with their labels, in the order of the outputs.
fn labelled_error(args: &MonitorArgs, labels: &Path) -> Result<LabelledError> {
    let mut list = LabelList::read(labels, &LabelColumns::default(), u64::MAX)?;
    let mut bound = ErrorBound::new(None, DELTA)?;
    let mut row = 0;
    for output in &args.outputs {
        let mut problem = None;
        read_predicted_labels(output, &mut |id, predicted| {
            let mut observe = || -> Result<()> {
                let listed = list.take(row, Some(id))?;
                row += 1;
                let label = listed.label.filter(|_| listed.drawn.may_be_held_out());
                if let Some((label, predicted)) = label.zip(predicted) {
                    bound.observe(!is_same(predicted, &label))?;
                }
                Ok(())
            };
            if problem.is_none() {
                problem = observe().err();
            }
        })?;
        problem.map_or(Ok(()), Err)?;
    }
    list.finish()?;
    let counts = bound.counts();
    Ok(LabelledError { labels: counts.answers, wrong: counts.wrong, low: bound.low(), high: bound.high() })
}

/// Returns whether a class of an output, which writes it escaped, is a label.
fn is_same(predicted: &str, label: &str) -> bool {
    predicted == label || predicted.trim_start_matches('\'') == escaped(label.as_bytes())
}
