//! `calmix resume` of a whole network, from its newest checkpoint.

use std::path::Path;

use anyhow::{Error, Result};
use calmix::command::resume_args::ResumeArgs;
use calmix::exit::Exit;
use calmix::format::shell_quoted;
use calmix::io::shown::shown;
use calmix::moved_data::moved;
use calmix::progress::ProgressSink;
use calmix::recipe::Recipe;
use calmix::run::read::inspect;
use calmix::run_outcome;
use calmix::run_summary::resuming;
use calmix::stop::Stop;
use calmix::terminal::{status, warn_at_once};
use calmix_train::launch::LaunchInfo;
use calmix_train::trainer::{Outcome, TrainError, Trainer};

use crate::launch_args::launch_info;
use crate::supervise::{is_supervised, own_arguments, stop_when_orphaned, supervise};

pub(crate) fn run(args: &ResumeArgs) -> Result<Exit> {
    let resolved = args.recipe.apply(inspect::recipe_layers(&args.run)?)?.resolve()?;
    let overridden = (!args.recipe.is_empty()).then(|| resolved.clone());
    let launch = launch_info(&args.processes)?;
    if !args.recipe.quiet && launch.is_none() {
        status(&resuming(&args.run, &resolved.recipe));
    }
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
        outcome.map_err(|error| explained(error, &resolved.recipe, &command)),
        &args.run,
        stop,
        launch.as_ref(),
    )
}

/// Replaces an error by a clearer one if the dataset is not where the recipe says.
fn explained(error: TrainError, recipe: &Recipe, command: &str) -> Error {
    let clearer = match &error {
        TrainError::Data(problem) => moved(problem, recipe, command),
        _ => None,
    };
    clearer.map_or_else(|| error.into(), Error::from)
}

/// Returns the exit of a process that is not rank 0 and prints nothing.
pub(super) fn silent_exit(outcome: Result<Outcome, TrainError>, stop: Stop) -> Result<Exit> {
    let stopped = stop.exit();
    Ok(if let Outcome::Stopped { .. } = outcome? { stopped } else { Exit::Done })
}

/// Shows how a run ended, on rank 0.
pub(super) fn show_outcome(
    outcome: Result<Outcome>,
    run: &Path,
    stop: Stop,
    launch: Option<&LaunchInfo>,
) -> Result<Exit> {
    run_outcome::show_outcome(outcome, run, stop, |recipe| next_resume(run, recipe, launch))
}

/// Says how to resume a run that stopped, with as many processes as before.
fn next_resume(run: &Path, recipe: &Recipe, launch: Option<&LaunchInfo>) -> String {
    match launch {
        None => run_outcome::next_resume(run, recipe),
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
