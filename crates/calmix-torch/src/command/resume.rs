//! `calmix resume`: continues a run from its newest checkpoint.

use std::path::Path;

use anyhow::Result;
use calmix::command::resume_args::ResumeArgs;
use calmix::exit::Exit;
use calmix::format::{counted, grouped, shell_quoted, written_to};
use calmix::head_table::heads;
use calmix::io::shown::shown;
use calmix::metric_table::{self, CalibratorState};
use calmix::recipe::{Recipe, Resolved};
use calmix::run::inspect;
use calmix::run::read;
use calmix::run::run::Paths;
use calmix::run_files::{self, cache_option};
use calmix::stop::Stop;
use calmix::terminal::{clear_line, print, status, warn, warn_at_once};
use calmix_train::launch::LaunchInfo;
use calmix_train::trainer::{Outcome, TrainError, Trainer};

use crate::launch_args::launch_info;
use crate::moved_dataset::explain_moved;
use crate::progress::ProgressSink;
use crate::supervise::{is_supervised, own_arguments, stop_when_orphaned, supervise};

pub(crate) fn run(args: &ResumeArgs) -> Result<Exit> {
    let resolved = args.recipe.apply(inspect::recipe_layers(&args.run)?)?.resolve()?;
    let overridden = (!args.recipe.is_empty()).then(|| resolved.clone());
    let steps = resolved.recipe.train.steps;
    let launch = launch_info(&args.processes)?;
    if !args.recipe.quiet && launch.is_none() {
        status(&format!("resuming {}, {} in total", shown(args.run.display()), counted(steps, "step")));
    }
    warn_of_cache(&args.run, &resolved)?;
    if let Some(processes) = args.processes.to_start() {
        return supervise(&own_arguments(), processes, &args.run, &Stop::listen()?);
    }
    let stop = Stop::listen()?.announced_if(launch.as_ref().is_none_or(|launch| launch.rank == 0));
    let mut progress = ProgressSink::new(&resolved.recipe, args.recipe.quiet);
    if launch.is_none() {
        progress = progress.resumed();
    }
    let trainer = Trainer::new(stop.flag()).warning(warn_at_once).sink(progress);
    let mut trainer = trainer.taking_over(args.processes.take_over);
    if let Some(launch) = &launch {
        stop_when_orphaned();
        trainer = stop.ending_at_signal(|| trainer.join(launch, &resolved.recipe))?;
    }
    let outcome = trainer.resume(&args.run, overridden.as_ref());
    if launch.as_ref().is_some_and(|launch| launch.rank > 0) {
        return silent_exit(outcome, stop);
    }
    let command = format!("calmix resume {}", shell_quoted(&args.run));
    show_outcome(
        outcome.map_err(|error| explain_moved(error, &resolved.recipe, &command)),
        &args.run,
        stop,
        launch.as_ref(),
    )
}

/// Warns that features are computed again, because only the user decides where calmix writes.
fn warn_of_cache(run: &Path, resolved: &Resolved) -> Result<()> {
    let written = inspect::recipe(run)?.recipe;
    let is_other = written.has_head() && written.network.cache != resolved.recipe.network.cache;
    if is_other && resolved.recipe.network.cache.is_empty() && read::result(run)?.is_none() {
        let own = Paths::new(run).features();
        let cache = cache_option(&written);
        warn(&format!(
            "features are computed again and written to {}, because only you decide where calmix writes; to use the cache \
             that the run's recipe names, add{cache}",
            shown(own.display())
        ));
    }
    Ok(())
}

/// Returns the exit of a process that is not rank 0 and prints nothing.
pub(super) fn silent_exit(outcome: Result<Outcome, TrainError>, stop: Stop) -> Result<Exit> {
    let stopped = stop.exit();
    Ok(if let Outcome::Stopped { .. } = outcome? { stopped } else { Exit::Done })
}

/// Shows how a run ended, on rank 0. The exit code is the run's, even if printing fails.
pub(super) fn show_outcome(
    outcome: Result<Outcome>,
    run: &Path,
    stop: Stop,
    launch: Option<&LaunchInfo>,
) -> Result<Exit> {
    clear_line();
    // Before anything is printed: ends the announcements about stopping.
    let stopped = stop.exit();
    let (text, exit) = match outcome? {
        Outcome::Stopped { step } => {
            let recipe = inspect::recipe(run)?.recipe;
            let saved = if step == 0 { "no step completed" } else { "state saved" };
            let text = format!(
                "stopped after {} of {} in {}: {saved}\n{}",
                grouped(step),
                counted(recipe.train.steps, "step"),
                shown(run.display()),
                next_resume(run, &recipe, launch)
            );
            (text, stopped)
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

/// Says how to resume a run that stopped, with as many processes as before.
fn next_resume(run: &Path, recipe: &Recipe, launch: Option<&LaunchInfo>) -> String {
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

/// Shows the result of a finished run in one table; `calmix inspect` shows the rest.
fn result(run: &Path) -> Result<String> {
    let result = read::result(run)?;
    let events =
        read::latest_evaluations(run, |seen| result.as_ref().is_some_and(|result| seen.step == result.step))?;
    let model = if result.is_some() { Some(read::model_info(run)?) } else { None };
    let has_head = model.as_ref().is_some_and(|model| model.head.is_some());
    let held_out = model.as_ref().and_then(|model| model.held_out.as_ref());
    let metrics = result.as_ref().map(|result| {
        let why = result.uncalibrated.as_ref();
        let mut evaluations = metric_table::of_result(result, &events);
        // The test split, if any.
        evaluations.drain(..evaluations.len().saturating_sub(1));
        let table = metric_table::table(&evaluations, CalibratorState::Ended(why));
        let table = table.unwrap_or_else(|| metric_table::without_metrics(why, has_head));
        let heads = result.heads.as_ref().map(heads).unwrap_or_default();
        format!(
            "model after {}\n\n{table}{heads}{}\n",
            counted(result.step, "step"),
            metric_table::guarantees(held_out)
        )
    });
    let files = format!(
        "{}\n`calmix inspect {}` shows more metrics and all files\n",
        written_to(&shown(run.display()), &format!(": {}", run_files::model_files(run))),
        shell_quoted(run)
    );
    Ok(metrics.unwrap_or_default() + &files + &run_files::next_with_model(run))
}
