//! A run: summary, progress, environment and result.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn};
use calmix_recipe::{Difference, Resolved};
use calmix_run::checkpoint::SkippedCheckpoint;
use calmix_run::read::inspect::{self, Inspected};
use calmix_run::read::{has_begun, latest_evaluations, model_info};
use calmix_run::result::{HeadChoice, HeadName, RunResult};
use serde_json::json;

use crate::error::CliError;
use crate::output::format::{counted, grouped, short_hash};
use crate::output::head_table::heads;
use crate::output::metric_table::{self, CalibratorState};
use crate::output::run_files;
use crate::predict::input::InputKind;
use crate::terminal::Output;

/// Shows the run in `folder`.
pub(super) fn inspect(folder: &Path) -> Result<Output> {
    if !has_begun(folder) {
        let folder = shown(folder.display());
        let message =
            format!("{folder}: this run was stopped before its first step; start it again with its recipe");
        return Err(CliError::invalid(message).hint("calmix train --help").into());
    }
    let Inspected { recipe, summary, changes, environment, step, skipped, result } =
        inspect::inspect(folder)?;
    // A finished run shows the evaluations of its result, which need not be the last ones.
    let of_result = |step| result.as_ref().is_none_or(|result| result.step == step);
    let events = latest_evaluations(folder, |evaluation| of_result(evaluation.step))?;
    let steps = recipe.recipe.steps();
    let state = state(result.is_some(), step, steps);
    let goes_on = if result.is_some() { String::new() } else { resume_line(step, steps) };
    let name = summary.based_on.as_ref().map(|name| format!("{}: ", shown(name)));
    let about = format!(
        "run {}: {state}\n\
         recipe    {}{} ({})\n\
         {}\
         method    {}\n\
         network   {}\n\
         data      {} ({}), {}\n\
         \x20         {} labelled, {} unlabelled, {} validation\n\
         seeds     train.seed {}, labels.seed {}\n\
         made by   calmix {} ({}), {}, {} on {}\n{goes_on}\n",
        shown(folder.display()),
        name.unwrap_or_default(),
        shown(&recipe.recipe.description),
        short_hash(&recipe.hash()),
        list_changes(changes.as_deref()),
        method(&recipe, result.as_ref()),
        shown(summary.network_in_words()),
        shown(&recipe.recipe.dataset.path),
        short_hash(&environment.dataset),
        counted(summary.classes as u64, "class"),
        grouped(summary.labelled as u64),
        grouped(summary.unlabelled),
        grouped(summary.validation as u64),
        summary.seed,
        summary.label_seed,
        shown(&environment.calmix),
        shown(short_commit(&environment.commit)),
        shown(&environment.engine),
        shown(&environment.system),
        shown(&environment.device),
    );
    let damaged = skipped
        .iter()
        .map(|bad| format!("warning: the checkpoint of step {} cannot be used: {}\n", bad.step, bad.reason));
    let damaged = damaged.collect::<Vec<_>>().concat();
    let evaluations = match &result {
        Some(result) => metric_table::of_result(result, &events),
        None => metric_table::latest(&events, |_| true),
    };
    let map = result
        .as_ref()
        .map_or(CalibratorState::NotYet, |result| CalibratorState::Ended(result.uncalibrated.as_ref()));
    let kind = if recipe.recipe.has_vectors() { InputKind::Vector } else { InputKind::Image };
    let metrics =
        evaluations.first().zip(metric_table::table(&evaluations, map, kind)).map(|(first, table)| {
            let more = result.as_ref().map(further_results).unwrap_or_default();
            format!("{}\n\n{table}\n{more}", metric_table::model_title(first.step))
        });
    // Only `calmix calibrate` changes a finished run, and only its model.json.
    let info = result.as_ref().map(|_| model_info(folder)).transpose()?;
    let held_out = info.as_ref().and_then(|info| info.held_out.as_ref());
    let mut guarantees = metric_table::guarantees(held_out, kind);
    if !guarantees.is_empty() {
        guarantees.push('\n');
    }
    let recalibration = info.and_then(|info| info.calibration).filter(|map| map.fitted_on == FittedOn::Later);
    let again = recalibration.as_ref().map(|map| calibrated_again(map, kind));
    let files = format!("files:\n{}", run_files::list(folder));
    let next = match &result {
        Some(_) => run_files::next_with_model(folder),
        None => run_files::next("resume", folder),
    };
    let damage = |bad: &SkippedCheckpoint| json!({ "step": bad.step, "reason": bad.reason.to_string() });
    let change = |change: &Difference| json!({ "key": change.path, "recipe": change.old, "run": change.new });
    let json = json!({
        "kind": "run",
        "folder": folder.display().to_string(),
        "finished": result.is_some(),
        "step": step,
        "steps": steps,
        "summary": summary,
        "changed": changes.map(|changes| changes.iter().map(change).collect::<Vec<_>>()),
        "recipe": recipe.to_json(),
        "recipe_hash": recipe.hash(),
        "environment": environment,
        "evaluations": evaluations,
        "result": result,
        "calibrated_again": recalibration,
        "damaged": skipped.iter().map(damage).collect::<Vec<_>>(),
    });
    let metrics = metrics.unwrap_or_default();
    let text = [about, damaged, metrics, again.unwrap_or_default(), guarantees, files, next].concat();
    Ok(Output { text, json })
}

/// Describes the progress of a run of `steps` steps; 0 steps mean that its heads are trained at once.
fn state(is_finished: bool, step: Option<u64>, steps: u64) -> String {
    match (is_finished, step) {
        (true, _) if steps == 0 => "finished".to_owned(),
        (false, _) if steps == 0 => "not finished".to_owned(),
        (true, _) => format!("finished after {}", counted(steps, "step")),
        (false, Some(step)) => format!("{} of {} saved", grouped(step), counted(steps, "step")),
        (false, None) => format!("no checkpoint yet, {} in total", counted(steps, "step")),
    }
}

/// Describes where a run resumes after a step.
fn resume_line(step: Option<u64>, steps: u64) -> String {
    match step {
        Some(step) => format!("resumes   after step {}, with step {}\n", grouped(step), grouped(step + 1)),
        None if steps == 0 => "resumes   from the beginning\n".to_owned(),
        None => "resumes   at the first step\n".to_owned(),
    }
}

/// Describes a calibration that was refitted on new labels.
fn calibrated_again(map: &FittedCalibrator, kind: InputKind) -> String {
    let folder = map.origin.as_ref().map(|origin| shown(&origin.folder)).unwrap_or_default();
    format!(
        "calibration refitted on the labels of {folder}\n\n{}\n",
        metric_table::calibration_table(map, kind)
    )
}

/// Formats the rest of a result: heads, other selection rules, pseudo-labels; each followed by an empty line.
fn further_results(result: &RunResult) -> String {
    let heads = result.heads.as_ref().map(heads).unwrap_or_default();
    let parts = [heads, metric_table::by_rule(result), metric_table::pseudo_labels(result)];
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| part + "\n").collect()
}

/// Abbreviates the hash of a commit, and keeps the mark of a dirty tree.
fn short_commit(commit: &str) -> String {
    match commit.strip_suffix("-dirty") {
        Some(hash) => short_hash(hash) + "-dirty",
        None => short_hash(commit),
    }
}

/// Describes the base algorithm, its threshold if any, the mixup pairing, and which head is the model.
fn method(recipe: &Resolved, result: Option<&RunResult>) -> String {
    let word = |key: &str| recipe.value(key).and_then(|value| value.as_str()).unwrap_or_default();
    let base = word("method.base");
    let threshold = recipe.value(&format!("method.{base}.threshold"));
    let threshold = threshold.map(|value| format!(", threshold {value},")).unwrap_or_default();
    let head =
        result.and_then(|result| result.heads.as_ref()).and_then(HeadChoice::kept).map(HeadName::in_words);
    if recipe.recipe.has_one_vector() {
        return head.unwrap_or("logistic regression, EM or their average").to_owned();
    }
    let head = head.map(|head| format!("; the model is {head}")).unwrap_or_default();
    format!("{base}{threshold} with {}{head}", word("method.mixup.pairing"))
}

/// Lists the keys of the run that differ from its recipe, one per line.
fn list_changes(changes: Option<&[Difference]>) -> String {
    let has_encoder = changes.unwrap_or_default().iter().any(|change| change.path == "network.output");
    // With an encoder, `network.name` has no effect.
    let is_used = |change: &&Difference| !(has_encoder && change.path == "network.name");
    let lines = changes.unwrap_or_default().iter().filter(is_used).enumerate().map(|(n, change)| {
        let title = if n == 0 { "changed" } else { "" };
        let key = &change.path;
        let was = change.old.to_string();
        let is = change.new.to_string();
        format!("{title:<10}{key} = {} (recipe: {})\n", shown(&is), shown(&was))
    });
    lines.collect::<Vec<_>>().concat()
}
