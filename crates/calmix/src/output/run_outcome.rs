//! The output at the end of a run: its result in a table, and the next commands.

use std::path::Path;

use anyhow::Result;
use calmix_io::process::launch::LaunchInfo;
use calmix_io::shown::shown;
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::Recipe;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::{Outcome, PoolComparison, PoolVerdict};

use crate::error::exit::Exit;
use crate::output::format::{class_list, counted, grouped, shell_quoted};
use crate::output::guarantee_basis::guarantee_basis;
use crate::output::head_table::kept_in_words;
use crate::output::learning_curve::forecast;
use crate::output::metric_table;
use crate::output::run_files::{self, cache_option};
use crate::output::verdict::verdict;
use crate::predict::guarantee::unseen_classes;
use crate::predict::input::InputKind;
use crate::process::stop::Stop;
use crate::process::supervise::is_supervised;
use crate::terminal::{clear_line, print, sentence};

/// Shows how a run ended; `next` explains how to resume it. The exit code is the run's, even if printing fails.
pub fn show_outcome(
    outcome: Result<Outcome>,
    run: &Path,
    stop: Stop,
    next: impl FnOnce(&Recipe) -> String,
) -> Result<Exit> {
    clear_line();
    // Before anything is printed, end the announcements about stopping.
    let stopped = stop.exit();
    let (text, exit) = match outcome? {
        Outcome::Stopped { step } => {
            let recipe = inspect::recipe(run)?.recipe;
            (stopped_text(run, &recipe, step, &next(&recipe)), stopped)
        }
        Outcome::AlreadyFinished(_) => {
            let text = format!("{}: this run is already finished\n\n{}", shown(run.display()), result(run)?);
            (text, Exit::Done)
        }
        Outcome::Finished(_) => (result(run)?, Exit::Done),
    };
    // A closed terminal or pipe does not change the outcome of the run.
    let _ = print(&text);
    Ok(exit)
}

/// Shows that a run stopped before its first step, when the process ends without an [`Outcome`].
pub fn show_stopped(run: &Path, recipe: &Recipe) {
    clear_line();
    // A closed terminal or pipe changes nothing.
    let _ = print(&stopped_text(run, recipe, 0, &next_resume(run, recipe, None)));
}

fn stopped_text(run: &Path, recipe: &Recipe, step: u64, next: &str) -> String {
    let folder = shown(run.display());
    let saved = if step == 0 { "no step completed" } else { "state saved" };
    let state = match recipe.steps() {
        0 => format!("stopped in {folder}: no result yet"),
        steps => {
            format!("stopped after {} of {} in {folder}: {saved}", grouped(step), counted(steps, "step"))
        }
    };
    format!("{state}\n{next}")
}

/// Explains how to resume a stopped run with the same number of processes.
pub fn next_resume(run: &Path, recipe: &Recipe, launch: Option<&LaunchInfo>) -> String {
    match launch {
        None => format!("next: calmix resume {}{}\n", shell_quoted(run), cache_option(recipe)),
        Some(launch) if is_supervised() => {
            format!("next: calmix resume {} --processes {}\n", shell_quoted(run), launch.local_world)
        }
        Some(_) => {
            format!(
                "next: start the same command with the same launcher to resume {}\n",
                shown(run.display())
            )
        }
    }
}

/// Shows the result of a finished run on one screen: a verdict, a table, the folder and the next commands. `calmix inspect` shows
/// the rest.
fn result(run: &Path) -> Result<String> {
    let result = read::result(run)?;
    let events = read::latest_evaluations(run, |evaluation| {
        result.as_ref().is_some_and(|result| evaluation.step == result.step)
    })?;
    let Some(result) = result else { return Ok(run_files::next_with_model(run)) };
    let model = read::model_info(run)?;
    let kind = InputKind::of(&model);
    // The last one is the test split, if there is one.
    let evaluation = metric_table::of_result(&result, &events).pop();
    let heads = result.heads.as_ref().map(|choice| sentence(&kept_in_words(choice)));
    let assessment = if let Some(evaluation) = evaluation {
        let verdict = sentence(&verdict(evaluation, kind));
        // With too few labels for a calibrator, there are also too few to compare heads.
        let is_calibrated = evaluation.calibrated.is_some();
        let why = (!is_calibrated).then(|| metric_table::uncalibrated_reason(result.uncalibrated.as_ref()));
        let reason = why.or(heads).map(|reason| reason + "\n").unwrap_or_default();
        let left_out = model.held_out.as_ref().filter(|_| evaluation.split == EvalSet::OutOfFold);
        let left_out = left_out.and_then(|held_out| left_out_labels(held_out, &model.classes));
        let left_out = left_out.map(|text| sentence(&text) + "\n").unwrap_or_default();
        let basis = guarantee_basis(model.held_out.as_ref(), evaluation, model.label_draws);
        let curve = result.heads.as_ref().and_then(|heads| heads.learning_curve.as_ref());
        let pool = result.pool.as_ref().and_then(pool_sentence);
        let labels: Vec<String> = basis.into_iter().chain(pool).chain(curve.map(forecast)).collect();
        let labels = if labels.is_empty() { String::new() } else { sentence(&labels.join(" ")) + "\n" };
        format!("{verdict}\n\n{}{left_out}{labels}{reason}", metric_table::short_table(evaluation, kind))
    } else {
        let text = metric_table::without_metrics(result.uncalibrated.as_ref(), model.head.is_some());
        text + &heads.map(|heads| heads + "\n").unwrap_or_default()
    };
    let written = format!(
        "{} written to {}; `calmix inspect {}` shows more",
        metric_table::model_title(result.step),
        shown(run.display()),
        shell_quoted(run)
    );
    Ok(format!("{assessment}\n{written}\n{}", run_files::next_with_model(run)))
}

/// Describes how the unlabelled samples differ from the labels, and what to do; `None` if they do not.
fn pool_sentence(pool: &PoolComparison) -> Option<String> {
    match pool.verdict {
        PoolVerdict::Alike => None,
        PoolVerdict::MixDiffers => Some(
            "The unlabelled samples have another mix of classes than the labels, as with labels in equal numbers: coverage and precision \
             hold for the mix of the labels; `calmix predict --mix estimate` adapts to another one."
                .to_owned(),
        ),
        PoolVerdict::Unlike => Some(
            "The labels are unlike the unlabelled samples, so coverage and precision hold for samples like the labels alone: label \
             unlabelled samples that are drawn at random."
                .to_owned(),
        ),
    }
}

/// Names the labels that the out-of-fold metrics leave out, because no head of a fold was trained on their class; `None` if there
/// are none.
fn left_out_labels(held_out: &HeldOut, classes: &[String]) -> Option<String> {
    let unseen = unseen_classes(held_out, classes);
    if unseen.is_empty() {
        return None;
    }
    Some(format!(
        "These metrics leave out {}: no head can be tested on the only label, or only group of labels, of a class. Label another \
         sample of {}.",
        class_list(&unseen),
        if unseen.len() == 1 { "it" } else { "each" }
    ))
}
