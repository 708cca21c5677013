//! How a run ended: its result in a table, and the next commands.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::Recipe;
use calmix_run::inspect;
use calmix_run::outcome::Outcome;
use calmix_run::read;

use crate::exit::Exit;
use crate::format::{counted, grouped, shell_quoted, written_to};
use crate::head_table::heads;
use crate::metric_table::{self, CalibratorState};
use crate::predict::input_kind::InputKind;
use crate::run_files::{self, cache_option};
use crate::stop::Stop;
use crate::terminal::{clear_line, print};

/// Shows how a run ended; `next` says how to resume it. The exit code is the run's, even if printing fails.
///
/// # Errors
/// The error of the run, or a file of it that cannot be read.
pub fn show_outcome(
    outcome: Result<Outcome>,
    run: &Path,
    stop: Stop,
    next: impl FnOnce(&Recipe) -> String,
) -> Result<Exit> {
    clear_line();
    // Before anything is printed: ends the announcements about stopping.
    let stopped = stop.exit();
    let (text, exit) = match outcome? {
        Outcome::Stopped { step } => {
            let recipe = inspect::recipe(run)?.recipe;
            let folder = shown(run.display());
            let saved = if step == 0 { "no step completed" } else { "state saved" };
            let state = match recipe.steps() {
                0 => format!("stopped in {folder}: no result yet"),
                steps => {
                    format!(
                        "stopped after {} of {} in {folder}: {saved}",
                        grouped(step),
                        counted(steps, "step")
                    )
                }
            };
            (format!("{state}\n{}", next(&recipe)), stopped)
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

/// Says how to resume a run that stopped, in one process.
pub fn next_resume(run: &Path, recipe: &Recipe) -> String {
    format!("next: calmix resume {}{}\n", shell_quoted(run), cache_option(recipe))
}

/// Shows the result of a finished run in one table; `calmix inspect` shows the rest.
fn result(run: &Path) -> Result<String> {
    let result = read::result(run)?;
    let events =
        read::latest_evaluations(run, |seen| result.as_ref().is_some_and(|result| seen.step == result.step))?;
    let model = if result.is_some() { Some(read::model_info(run)?) } else { None };
    let has_head = model.as_ref().is_some_and(|model| model.head.is_some());
    let kind = model.as_ref().map_or(InputKind::Image, InputKind::of);
    let held_out = model.as_ref().and_then(|model| model.held_out.as_ref());
    let metrics = result.as_ref().map(|result| {
        let why = result.uncalibrated.as_ref();
        let mut evaluations = metric_table::of_result(result, &events);
        // The test split, if any.
        evaluations.drain(..evaluations.len().saturating_sub(1));
        let table = metric_table::table(&evaluations, CalibratorState::Ended(why), kind);
        let table = table.unwrap_or_else(|| metric_table::without_metrics(why, has_head));
        let heads = result.heads.as_ref().map(heads).unwrap_or_default();
        let title = metric_table::model_title(result.step);
        format!("{title}\n\n{table}{heads}{}\n", metric_table::guarantees(held_out, kind))
    });
    let files = format!(
        "{}\n`calmix inspect {}` shows more metrics and all files\n",
        written_to(&shown(run.display()), &format!(": {}", run_files::model_files(run))),
        shell_quoted(run)
    );
    Ok(metrics.unwrap_or_default() + &files + &run_files::next_with_model(run))
}
