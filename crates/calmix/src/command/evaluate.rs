//! `calmix evaluate`: evaluates the model of a run, on its own splits or on other labelled samples.

mod on_samples;
mod votes;

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Error, Result};
use calmix_data::error::DataError;
use calmix_formats::error::FormatProblem;
use calmix_io::shown::shown;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_recipe::{Recipe, Resolved};
use calmix_run::read::inspect;
use serde_json::json;

use crate::args::evaluate::EvaluateArgs;
use crate::args::options::data::existing_labelled;
use crate::command::evaluate::on_samples::EvaluationOn;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::error::explained_error::moved;
use crate::labelled::scratch_folder;
use crate::model::folder::{input_kind, with_model};
use crate::model::loaded_model::LoadedModel;
use crate::model::options::ModelOptions;
use crate::model::vector_model::check_device;
use crate::output::format::shell_quoted;
use crate::output::metric_table::{self, CalibratorState};
use crate::output::run_files;
use crate::predict::input::InputKind;
use crate::process::launched::threads_of_process;
use crate::process::stop::{Stop, remove_scratch};
use crate::terminal::{print, print_json, status, warn};
use crate::trainer::{Evaluated, Trainers};

pub(super) fn run(args: &EvaluateArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    match &args.on.on {
        Some(path) => on_labelled_samples(args, path),
        None => on_run_splits(args, trainers),
    }
}

/// Evaluates the model of a finished run, or the newest checkpoint of an unfinished one, on the run's splits.
fn on_run_splits(args: &EvaluateArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    let recipe = inspect::recipe(&args.run)?.recipe;
    let trainer = trainers.of(&recipe)?;
    let kind = if recipe.has_vectors() { InputKind::Vector } else { InputKind::Image };
    let settings = match kind {
        InputKind::Image => args.data.settings()?,
        InputKind::Vector => {
            check_device(&args.run, args.device)?;
            args.data.vector_settings()?
        }
    };
    let changed = changed_recipe(args, settings)?;
    let resolved = match &changed {
        Some(changed) => changed.clone(),
        None => inspect::recipe(&args.run)?,
    };
    trainer.check_run(&args.run, &resolved.recipe)?;
    status(&format!("evaluating {} …", shown(args.run.display())));
    let clearer = |error: Error| {
        let problem = error.downcast_ref::<DataError>();
        let clearer = problem.and_then(|problem| explained(problem, args, &resolved.recipe));
        clearer.map_or(error, Error::from)
    };
    match trainer.evaluate(&args.run, changed, args.device).map_err(clearer)? {
        Evaluated::Done(output) => show(args, &output, kind)?,
        Evaluated::Stopped(exit) => return Ok(exit),
    }
    Ok(Exit::Done)
}

fn on_labelled_samples(args: &EvaluateArgs, path: &Path) -> Result<Exit> {
    let run = with_model(&args.run, "evaluate", &[])?;
    let path = existing_labelled(path, input_kind(run))?;
    let threads = threads_of_process(args.threads, None);
    let options =
        ModelOptions { device: args.device, threads: Some(threads.get()), ..ModelOptions::default() };
    let stop = Stop::listen()?;
    let Some(model) = LoadedModel::load(run, &options, &stop)? else { return Ok(stop.exit()) };
    let scratch = scratch_folder()?;
    let dataset = model.open_labelled(run, path, &args.on.reading, scratch.path(), &stop)?;
    let evaluation = EvaluationOn::new(args, path, model.kind(), model.rule(), &dataset)?;
    let evaluate = || -> Result<bool> {
        let ids = evaluation.ids();
        let Some(found) = model.predict_labelled(path, dataset, ids, threads, &stop)? else {
            return Ok(false);
        };
        evaluation.show(&found)?;
        Ok(true)
    };
    let is_done = stop.ending_soon(|| remove_scratch(scratch.path()), evaluate)?;
    Ok(if is_done { Exit::Done } else { stop.exit() })
}

/// Returns the command that evaluates the run, for hints.
fn command(args: &EvaluateArgs) -> String {
    format!("calmix evaluate {}", shell_quoted(&args.run))
}

/// Explains why data cannot be read: the folder of `--data` is not the dataset of the run, or the dataset has moved.
fn explained(problem: &DataError, args: &EvaluateArgs, recipe: &Recipe) -> Option<CliError> {
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

/// Returns the recipe of the run with other settings and `--threads`; `None` if nothing changes.
fn changed_recipe(args: &EvaluateArgs, mut settings: Vec<String>) -> Result<Option<Resolved>> {
    settings.extend(args.threads.map(|threads| format!("train.threads={threads}")));
    if settings.is_empty() {
        return Ok(None);
    }
    let layers = inspect::recipe_layers(&args.run)?;
    Ok(Some(settings.iter().fold(layers, |layers, setting| layers.set(setting)).resolve()?))
}

/// Prints the metrics on the splits of the run's dataset; refuses a run without labels on any split.
fn show(args: &EvaluateArgs, output: &EvalOutput, kind: InputKind) -> Result<()> {
    let evaluations: Vec<_> = output.evaluations.iter().collect();
    let Some(first) = evaluations.first() else {
        let message =
            "this run has no test subset and no held-out labels, so there is nothing to evaluate on";
        let on = if kind == InputKind::Vector { "VECTORS" } else { "FOLDER" };
        return Err(CliError::invalid(message).hint(format!("{} --on {on}", command(args))).into());
    };
    for evaluation in evaluations.iter().filter(|evaluation| evaluation.skipped > 0) {
        let split = evaluation.split.word();
        let all = evaluation.samples + evaluation.skipped;
        let first = output.corrupt.as_deref().unwrap_or_default();
        warn(&format!(
            "{} of {all} {split} samples are corrupt and were left out ({first})",
            evaluation.skipped
        ));
    }
    if args.json {
        return print_json(&json!({
            "run": args.run.display().to_string(),
            "step": first.step,
            "scaling": output.calibrator().and_then(FittedCalibrator::scaling),
            "calibration": output.calibrator(),
            "evaluations": evaluations,
        }));
    }
    let why = output.fitted.as_ref().and_then(Fitted::reason);
    let state = CalibratorState::Ended(why.as_ref());
    let table = metric_table::table(&evaluations, state, kind).unwrap_or_default();
    print(&format!(
        "{}\n\n{table}\n{}",
        metric_table::model_title(first.step),
        run_files::next_with_model(&args.run)
    ))
}
