//! A run: progress, environment and result.

use std::path::Path;

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::run::checkpoint::SkippedCheckpoint;
use calmix::run::read::{has_begun, latest_evaluations};
use calmix::train::inspect::{self, Inspected};
use calmix::train::trainer::TrainError;
use serde_json::json;

use super::InspectOutput;
use crate::format::{counted, grouped};
use crate::{figures, run_files};

/// Shows the run in `folder`.
pub(super) fn inspect(folder: &Path) -> Result<InspectOutput> {
    if !has_begun(folder) {
        return Err(TrainError::NotBegun { path: folder.to_owned() }.into());
    }
    let Inspected { recipe, environment, step, skipped, result } = inspect::inspect(folder)?;
    let of_result = |step| result.as_ref().is_none_or(|result| result.step == step);
    let events = latest_evaluations(folder, |seen| of_result(seen.step))?;
    let steps = recipe.recipe.train.steps;
    let state = match (&result, step) {
        (Some(_), _) => format!("finished after {}", counted(steps, "step")),
        (None, Some(step)) => format!("{} of {} saved", grouped(step), counted(steps, "step")),
        (None, None) => format!("no checkpoint yet, {} in total", counted(steps, "step")),
    };
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let about = format!(
        "run {}: {state}\n\
         recipe    {} ({})\n\
         network   {}\n\
         data      {} ({})\n\
         made by   calmix {}, {}, {} on {}\n\n",
        shown(folder.display()),
        shown(&recipe.recipe.description),
        short(&recipe.hash()),
        recipe.recipe.network.name,
        shown(&recipe.recipe.dataset.path),
        short(&environment.dataset),
        shown(&environment.calmix),
        shown(&environment.engine),
        shown(&environment.system),
        shown(&environment.device),
    );
    let damaged = skipped
        .iter()
        .map(|bad| format!("warning: the checkpoint of step {} cannot be used: {}\n", bad.step, bad.reason));
    let damaged = damaged.collect::<Vec<_>>().concat();
    let seen = match &result {
        Some(result) => figures::of_result(result, &events),
        None => figures::latest(&events, |_| true),
    };
    let figures = seen.first().zip(figures::table(&seen, result.is_some())).map(|(first, table)| {
        let pseudo = result.as_ref().map(figures::pseudo_labels).filter(|text| !text.is_empty());
        let pseudo = pseudo.map(|text| text + "\n").unwrap_or_default();
        format!("model after {}\n\n{table}\n{pseudo}", counted(first.step, "step"))
    });
    let files = format!("files:\n{}", run_files::list(folder));
    let next = run_files::next(if result.is_some() { "evaluate" } else { "resume" }, folder);
    let damage = |bad: &SkippedCheckpoint| json!({ "step": bad.step, "reason": bad.reason.to_string() });
    let json = json!({
        "kind": "run",
        "folder": folder.display().to_string(),
        "finished": result.is_some(),
        "step": step,
        "steps": steps,
        "recipe": recipe.to_json(),
        "recipe_hash": recipe.hash(),
        "environment": environment,
        "evaluations": seen,
        "result": result,
        "damaged": skipped.iter().map(damage).collect::<Vec<_>>(),
    });
    let text = [about, damaged, figures.unwrap_or_default(), files, next].concat();
    Ok(InspectOutput { text, json })
}
