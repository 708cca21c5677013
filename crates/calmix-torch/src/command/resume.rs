//! `calmix resume`: continues a run from its newest checkpoint.

use std::path::Path;

use anyhow::Result;
use calmix::command::resume_args::ResumeArgs;
use calmix::exit::Exit;
use calmix::format::shell_quoted;
use calmix::io::shown::shown;
use calmix::progress::ProgressSink;
use calmix::recipe::{Recipe, Resolved};
use calmix::run::inspect;
use calmix::run::read;
use calmix::run::run::Paths;
use calmix::run_files::cache_option;
use calmix::run_outcome;
use calmix::run_summary::resuming;
use calmix::stop::Stop;
use calmix::terminal::{status, warn, warn_at_once};
use calmix_train::launch::LaunchInfo;
use calmix_train::trainer::{Outcome, TrainError, Trainer};

use crate::launch_args::launch_info;
use crate::moved_dataset::explain_moved;
use crate::supervise::{is_supervised, own_arguments, stop_when_orphaned, supervise};

pub(crate) fn run(args: &ResumeArgs) -> Result<Exit> {
    let resolved = args.recipe.apply(inspect::recipe_layers(&args.run)?)?.resolve()?;
    let overridden = (!args.recipe.is_empty()).then(|| resolved.clone());
    let launch = launch_info(&args.processes)?;
    if !args.recipe.quiet && launch.is_none() {
        status(&resuming(&args.run, &resolved.recipe));
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
    let recipe = &resolved.recipe;
    let resume = || trainer.resume(&args.run, overridden.as_ref());
    // A head has no checkpoints: there is nothing to wait for.
    let outcome = if launch.is_none() && recipe.has_head() {
        stop.ending_soon(|| run_outcome::show_stopped(&args.run, recipe), resume)
    } else {
        resume()
    };
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
