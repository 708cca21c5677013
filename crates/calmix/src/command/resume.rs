//! `calmix resume`: on from where a run was stopped.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix::train::inspect;
use calmix::train::recipe::Layers;
use calmix::train::run::{Paths, RunFile};
use calmix::train::trainer::{Outcome, TrainError, Trainer};
use clap::Args;

use super::changes::Changes;
use super::many::Many;
use super::place::or_moved;
use crate::exit::Exit;
use crate::number::{counted, grouped, typed};
use crate::progress::Shown;
use crate::stop::Stop;
use crate::supervise::{own_arguments, stop_when_orphaned, supervise};
use crate::terminal::{clear_line, say, tell};
use crate::{figures, written};

/// Continue a run that was stopped or killed, to the same bits as if it had not been
///
/// What a run learns cannot change on the way; what can, such as --threads, --data for a dataset that has moved, or
/// --set checkpoint.every=100, may be given here. The environment is not asked: the run's own recipe counts.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    many: Many,
    #[command(flatten)]
    changes: Changes,
}

impl Resume {
    pub(crate) fn run(self) -> Result<Exit> {
        let mut resolved = inspect::recipe(&self.run)?;
        let mut changed = None;
        if !self.changes.are_none() {
            let layers = Layers::new().file(&Paths::new(&self.run).file(RunFile::Recipe)?);
            resolved = self.changes.over(layers)?.resolve()?;
            changed = Some(resolved.clone());
        }
        let steps = resolved.recipe.train.steps;
        let place = self.many.place()?;
        if !self.changes.quiet && place.is_none() {
            tell(&format!("resuming {}, a run of {}", self.run.display(), counted(steps, "step")));
        }
        if let Some(processes) = self.many.to_start() {
            return supervise(&own_arguments(), processes, &self.run, &Stop::listen()?);
        }
        let stop = Stop::listen()?.announced_by(place.as_ref());
        let mut trainer = Trainer::new(stop.flag()).tell(Shown::new(steps, self.changes.quiet));
        if let Some(place) = &place {
            stop_when_orphaned();
            trainer = trainer.join(place, &resolved.recipe)?;
        }
        let outcome = trainer.resume(&self.run, changed.as_ref());
        if place.is_some_and(|place| place.rank > 0) {
            return ended_elsewhere(outcome, stop);
        }
        let command = format!("calmix resume {}", typed(&self.run));
        ended(outcome.map_err(|error| or_moved(error, &resolved.recipe, &command)), &self.run, stop)
    }
}

/// How a run ended in a process that leaves the telling to another.
pub(super) fn ended_elsewhere(outcome: Result<Outcome, TrainError>, stop: Stop) -> Result<Exit> {
    let stopped = stop.exit();
    Ok(if let Outcome::Stopped { .. } = outcome? { stopped } else { Exit::Done })
}

/// Shows how a run ended.
pub(super) fn ended(outcome: Result<Outcome>, run: &Path, stop: Stop) -> Result<Exit> {
    clear_line();
    // Whatever came of it: from here on nothing is said about stopping.
    let stopped = stop.exit();
    match outcome? {
        Outcome::Stopped { step } => {
            let steps = inspect::recipe(run)?.recipe.train.steps;
            let kept = if step == 0 { "nothing was learnt yet" } else { "everything up to there is kept" };
            say(&format!(
                "stopped after {} of {} in {}: {kept}\n{}",
                grouped(step),
                counted(steps, "step"),
                run.display(),
                written::next("resume", run)
            ))?;
            Ok(stopped)
        }
        Outcome::AlreadyFinished(_) => {
            say(&format!("{}: this run was finished before\n\n{}", run.display(), result(run)?))?;
            Ok(Exit::Done)
        }
        Outcome::Finished(_) => {
            say(&result(run)?)?;
            Ok(Exit::Done)
        }
    }
}

/// The result of a finished run, with its files.
fn result(run: &Path) -> Result<String> {
    let (result, events) = (inspect::result(run)?, inspect::events(run)?);
    let figures = result.as_ref().map(|result| {
        let table = figures::table(&figures::of_result(result, &events), true);
        let table = table.unwrap_or("no labels were held out, so there are no figures\n".to_owned());
        format!("the model after {}\n\n{table}{}\n", counted(result.step, "step"), figures::by_rule(result))
    });
    Ok(figures.unwrap_or_default() + &written::run(run) + &written::next("inspect", run))
}
