//! The evaluation of a run again: its metrics on the splits of its own dataset, or on other labelled samples.

pub(crate) mod on_samples;
mod votes;

use std::io::ErrorKind;

use anyhow::Result;
use calmix_data::error::DataError;
use calmix_formats::error::FormatProblem;
use calmix_io::shown::shown;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_recipe::{Recipe, Resolved};
use calmix_run::read::inspect;
use serde_json::json;

use crate::args::evaluate::EvaluateArgs;
use crate::error::CliError;
use crate::output::format::shell_quoted;
use crate::output::metric_table::{self, CalibratorState};
use crate::output::moved_data::moved;
use crate::output::run_files;
use crate::predict::input_kind::InputKind;
use crate::terminal::{print, print_json, warn};

/// The command that evaluates the run, for hints.
pub(crate) fn command(args: &EvaluateArgs) -> String {
    format!("calmix evaluate {}", shell_quoted(&args.run))
}

/// The clearer error about data that cannot be read: the folder of `--data` is not the dataset of the run, or the dataset has
/// moved.
pub(crate) fn explained(problem: &DataError, args: &EvaluateArgs, recipe: &Recipe) -> Option<CliError> {
    let command = command(args);
    let data = args.data.named().filter(|data| data.is_dir() && !recipe.has_vectors());
    let is_missing = |problem: &FormatProblem| matches!(problem, FormatProblem::Io(error) if error.kind() == ErrorKind::NotFound);
    match data.filter(|_| problem.problem().is_some_and(is_missing)) {
        Some(data) => {
            let place = shown(data.display());
            let message = format!("{place}: not the dataset that the run was trained on: {problem}");
            let hint = format!("{command} --on {}, for other labelled images", shell_quoted(data));
            Some(CliError::invalid(message).hint(hint))
        }
        None => moved(problem, recipe, &command),
    }
}

/// The recipe of the run with other settings and `--threads`; `None` if there are none.
///
/// # Errors
/// If the folder has no recipe, or a setting is invalid.
pub(crate) fn changed_recipe(args: &EvaluateArgs, mut settings: Vec<String>) -> Result<Option<Resolved>> {
    settings.extend(args.threads.map(|threads| format!("train.threads={threads}")));
    if settings.is_empty() {
        return Ok(None);
    }
    let layers = inspect::recipe_layers(&args.run)?;
    Ok(Some(settings.iter().fold(layers, |layers, setting| layers.set(setting)).resolve()?))
}

/// Prints the metrics on the splits of the run's own dataset.
///
/// # Errors
/// If there are none.
pub(crate) fn show(args: &EvaluateArgs, output: &EvalOutput, kind: InputKind) -> Result<()> {
    let evaluations: Vec<_> = output.evaluations.iter().collect();
    let Some(first) = evaluations.first() else {
        let message =
            "this run has no test subset and no held-out labels, so there is nothing to evaluate on";
        let on = if kind == InputKind::Vector { "VECTORS" } else { "FOLDER" };
        return Err(CliError::invalid(message).hint(format!("{} --on {on}", command(args))).into());
    };
    for seen in evaluations.iter().filter(|seen| seen.skipped > 0) {
        let split = seen.split.name();
        let all = seen.samples + seen.skipped;
        let first = output.corrupt.as_deref().unwrap_or_default();
        warn(&format!("{} of {all} {split} samples are corrupt and were left out ({first})", seen.skipped));
    }
    if args.json {
        return print_json(&json!({
            "run": args.run.display().to_string(),
            "step": first.step,
            "scaling": output.map().and_then(FittedCalibrator::scaling),
            "calibration": output.map(),
            "evaluations": evaluations,
        }));
    }
    let why = output.fitted.as_ref().and_then(Fitted::nothing);
    let state = CalibratorState::Ended(why.as_ref());
    let table = metric_table::table(&evaluations, state, kind).unwrap_or_default();
    print(&format!(
        "{}\n\n{table}\n{}",
        metric_table::model_title(first.step),
        run_files::next_with_model(&args.run)
    ))
}
