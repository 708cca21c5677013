//! What trains the runs of the commands: heads in this crate, whole networks in `calmix-torch`. Each command is written once,
//! and gets its trainer here.

mod heads;

use std::path::Path;

use anyhow::Result;
use calmix_io::process::launch::LaunchInfo;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::PreparedRun;
use calmix_recipe::device::Device;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::result::Outcome;
use calmix_run::run::Build;

pub use heads::{FastestDevice, Heads, Trainers};

use crate::error::CliError;
use crate::error::exit::Exit;
use crate::process::launched::Processes;
use crate::process::stop::Stop;

/// Trains and evaluates runs of one kind. Its errors are ready to be reported.
pub trait Trainer: Sync {
    /// What the program was compiled from.
    fn build(&self) -> Build;

    /// The device if the recipe leaves it open.
    fn device(&self) -> Device;

    /// The precision of a run, if there is a choice.
    fn precision(&self, recipe: &Recipe, device: Device) -> Option<String>;

    /// Whether a run that stops goes on from where it was, so that its last step is worth waiting for.
    fn has_checkpoints(&self) -> bool;

    /// Refuses a device that this machine does not have.
    fn check_device(&self, _: &Recipe) -> Result<()> {
        Ok(())
    }

    /// Refuses what the recipe names and cannot be used here, before a dataset is read.
    fn check(&self, _: &Recipe) -> Result<()> {
        Ok(())
    }

    /// The same for a run that exists.
    fn check_run(&self, _: &Path, _: &Recipe) -> Result<()> {
        Ok(())
    }

    /// Refuses processes that cannot share a run; `instead` says what to do.
    fn check_processes(&self, processes: &Processes, instead: &str) -> Result<(), CliError>;

    /// Creates the folder of a run that several processes of this machine are going to resume from its beginning.
    fn create(&self, _: RunRequest<'_>, _: PreparedRun, _: usize) -> Result<()> {
        Err(one_process().into())
    }

    /// Starts a run, or resumes it if it has begun.
    fn start(&self, training: Training<'_>, prepared: PreparedRun) -> Result<Outcome>;

    /// Resumes a run, with the recipe that it has or with another one.
    fn resume(&self, training: Training<'_>, run: &Path, recipe: ResumedRecipe) -> Result<Outcome>;

    /// Shares a run that the first process has prepared, or is going to prepare.
    fn follow(&self, _: Training<'_>, _: &Path, _: &Resolved) -> Result<Outcome> {
        Err(one_process().into())
    }

    /// Evaluates a run on its own splits.
    fn evaluate(&self, run: &Path, recipe: Option<Resolved>, device: Option<Device>) -> Result<Evaluated>;
}

/// The refusal of several processes for a run that they cannot share.
fn one_process() -> CliError {
    CliError::invalid("this run is trained in one process")
}

/// A run that is to be trained by this process.
pub struct Training<'a> {
    /// Its sinks and its stop flag.
    pub request: RunRequest<'a>,
    /// The signals of this process.
    pub stop: &'a Stop,
    /// The place of this process among those that a launcher started.
    pub launch: Option<&'a LaunchInfo>,
    /// The hash of the requested recipe, the same in all processes; `None` to compare the recipe itself.
    pub recipe_hash: Option<String>,
}

/// The recipe of a run that is resumed.
#[derive(Debug)]
pub struct ResumedRecipe {
    pub resolved: Resolved,
    /// Whether the user changed it.
    pub is_changed: bool,
}

impl ResumedRecipe {
    /// The recipe, if it is not the run's own.
    pub fn changed(self) -> Option<Resolved> {
        self.is_changed.then_some(self.resolved)
    }
}

/// How an evaluation ended.
pub enum Evaluated {
    /// With metrics.
    Done(EvalOutput),
    /// By a signal.
    Stopped(Exit),
}
