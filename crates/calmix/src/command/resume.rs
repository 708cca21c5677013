//! `calmix resume`: continues a run from its newest checkpoint.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix::run::read;
use calmix::run::run::{Paths, RunFile};
use calmix::train::inspect;
use calmix::train::recipe::Layers;
use calmix::train::trainer::{Outcome, TrainError, Trainer};
use clap::Args;

use super::data_args::explain_moved;
use super::process_args::ProcessArgs;
use super::recipe_args::RecipeArgs;
use crate::exit::Exit;
use crate::format::{counted, grouped, shell_quoted};
use crate::progress::ProgressSink;
use crate::stop::Stop;
use crate::supervise::{own_arguments, stop_when_orphaned, supervise};
use crate::terminal::{clear_line, print, status};
use crate::{figures, run_files};

/// Resume a stopped or killed run; bit-identical to an uninterrupted run
///
/// Settings that affect what the run learns cannot change. Others can: --threads, --data if the dataset has moved, --set
/// checkpoint.every=100. The run uses the recipe in its folder and ignores variables such as CALMIX_TRAIN__STEPS.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    recipe: RecipeArgs,
}

impl ResumeArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let mut resolved = inspect::recipe(&self.run)?;
        let mut overridden = None;
        if !self.recipe.is_empty() {
            let layers = Layers::new().file(&Paths::new(&self.run).file(RunFile::Recipe)?);
            resolved = self.recipe.apply(layers)?.resolve()?;
            overridden = Some(resolved.clone());
        }
        let steps = resolved.recipe.train.steps;
        let launch = self.processes.launch_info()?;
        if !self.recipe.quiet && launch.is_none() {
            status(&format!("resuming {}, {} in total", self.run.display(), counted(steps, "step")));
        }
        if let Some(processes) = self.processes.to_start() {
            return supervise(&own_arguments(), processes, &self.run, &Stop::listen()?);
        }
        let stop = Stop::listen()?.announced_by_first(launch.as_ref());
        let mut trainer = Trainer::new(stop.flag()).tell(ProgressSink::new(steps, self.recipe.quiet));
        if let Some(launch) = &launch {
            stop_when_orphaned();
            trainer = trainer.join(launch, &resolved.recipe)?;
        }
        let outcome = trainer.resume(&self.run, overridden.as_ref());
        if launch.is_some_and(|launch| launch.rank > 0) {
            return silent_exit(outcome, stop);
        }
        let command = format!("calmix resume {}", shell_quoted(&self.run));
        show_outcome(
            outcome.map_err(|error| explain_moved(error, &resolved.recipe, &command)),
            &self.run,
            stop,
        )
    }
}

/// The exit of a process that is not rank 0 and prints nothing.
pub(super) fn silent_exit(outcome: Result<Outcome, TrainError>, stop: Stop) -> Result<Exit> {
    let stopped = stop.exit();
    Ok(if let Outcome::Stopped { .. } = outcome? { stopped } else { Exit::Done })
}

/// Shows how a run ended, on rank 0.
pub(super) fn show_outcome(outcome: Result<Outcome>, run: &Path, stop: Stop) -> Result<Exit> {
    clear_line();
    // Before anything is printed: ends the announcements about stopping.
    let stopped = stop.exit();
    match outcome? {
        Outcome::Stopped { step } => {
            let steps = inspect::recipe(run)?.recipe.train.steps;
            let saved = if step == 0 { "no step completed" } else { "state saved" };
            print(&format!(
                "stopped after {} of {} in {}: {saved}\n{}",
                grouped(step),
                counted(steps, "step"),
                run.display(),
                run_files::next("resume", run)
            ))?;
            Ok(stopped)
        }
        Outcome::AlreadyFinished(_) => {
            print(&format!("{}: this run is already finished\n\n{}", run.display(), result(run)?))?;
            Ok(Exit::Done)
        }
        Outcome::Finished(_) => {
            print(&result(run)?)?;
            Ok(Exit::Done)
        }
    }
}

/// The result of a finished run, with its files.
fn result(run: &Path) -> Result<String> {
    let (result, events) = (read::result(run)?, read::events(run)?);
    let figures = result.as_ref().map(|result| {
        let table = figures::table(&figures::of_result(result, &events), true);
        let table =
            table.unwrap_or("no test subset and no held-out labels, so there are no figures\n".to_owned());
        format!("model after {}\n\n{table}{}\n", counted(result.step, "step"), figures::by_rule(result))
    });
    let files = format!("written to {}:\n{}", run.display(), run_files::list(run));
    Ok(figures.unwrap_or_default() + &files + &run_files::next("inspect", run))
}
