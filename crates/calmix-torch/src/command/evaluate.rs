//! `calmix evaluate`: evaluates the model of a run.

mod on_folder;
mod votes;

use std::io;

use anyhow::{Error, Result};
use calmix::command::evaluate_args::EvaluateArgs;
use calmix::data::error::DataProblem;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::{counted, shell_quoted};
use calmix::io::shown::shown;
use calmix::metric_table::{self, CalibratorState};
use calmix::metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix::predict::input_kind::InputKind;
use calmix::recipe::Recipe;
use calmix::run::inspect;
use calmix::run_files;
use calmix::terminal::{print, print_json, status, warn};
use calmix_train::trainer::{TrainError, evaluate_run};
use serde_json::json;

use crate::moved_dataset::explain_moved;

pub(crate) fn run(args: &EvaluateArgs) -> Result<Exit> {
    if let Some(exit) = on_folder::run(&args.on, &args.run, args.device, args.json)? {
        return Ok(exit);
    }
    let mut resolved = inspect::recipe(&args.run)?;
    let mut changed = None;
    if !args.data.is_empty() {
        let layers = inspect::recipe_layers(&args.run)?;
        let settings = args.data.settings()?;
        resolved = settings.iter().fold(layers, |layers, setting| layers.set(setting)).resolve()?;
        changed = Some(resolved.clone());
    }
    status(&format!("evaluating {} …", shown(args.run.display())));
    let command = format!("calmix evaluate {}", shell_quoted(&args.run));
    let output = evaluate_run(&args.run, changed, args.device)
        .map_err(|error| explain_other(args, error, &resolved.recipe, &command))?;
    let evaluations: Vec<_> = output.evaluations.iter().collect();
    let Some(first) = evaluations.first() else {
        let message =
            "this run has no test subset and no held-out labels, so there is nothing to evaluate on";
        return Err(CliError::invalid(message).hint(format!("{command} --on FOLDER")).into());
    };
    for seen in evaluations.iter().filter(|seen| seen.skipped > 0) {
        let (split, all) = (seen.split.name(), seen.samples + seen.skipped);
        let first = output.corrupt.as_deref().unwrap_or_default();
        warn(&format!("{} of {all} {split} samples are corrupt and were left out ({first})", seen.skipped));
    }
    if args.json {
        print_json(&json!({
            "run": args.run.display().to_string(),
            "step": first.step,
            "scaling": output.map().and_then(FittedCalibrator::scaling),
            "calibration": output.map(),
            "evaluations": evaluations,
        }))?;
        return Ok(Exit::Done);
    }
    let why = output.fitted.as_ref().and_then(Fitted::nothing);
    let table = metric_table::table(&evaluations, CalibratorState::Ended(why.as_ref()), InputKind::Image)
        .unwrap_or_default();
    print(&format!(
        "model after {}\n\n{table}\n{}",
        counted(first.step, "step"),
        run_files::next_with_model(&args.run)
    ))?;
    Ok(Exit::Done)
}

/// Replaces the error about a file that is missing below `--data`: the folder is not the dataset of the run.
fn explain_other(args: &EvaluateArgs, error: TrainError, recipe: &Recipe, command: &str) -> Error {
    let Some(data) = args.data.named().filter(|data| data.is_dir()) else {
        return explain_moved(error, recipe, command);
    };
    let problem = match &error {
        TrainError::Data(error) => error.problem(),
        _ => None,
    };
    if !matches!(problem, Some(DataProblem::Io(error)) if error.kind() == io::ErrorKind::NotFound) {
        return explain_moved(error, recipe, command);
    }
    let message = format!("{}: not the dataset that the run was trained on: {error}", shown(data.display()));
    let hint = format!("{command} --on {}, for other labelled images", shell_quoted(data));
    CliError::invalid(message).hint(hint).into()
}
