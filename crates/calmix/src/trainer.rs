//! The trainers behind the commands: of heads in this crate, of whole networks in `calmix-torch`. Each command is written once
//! and receives its trainer.

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

/// A trainer of one kind of runs, which also evaluates them. Its errors are ready to be reported.
pub trait Trainer: Sync {
    /// Returns the commit and the features of the program.
    fn build(&self) -> Build;

    /// Returns the device that is used if the recipe leaves it open.
    fn device(&self) -> Device;

    /// Describes the precision of a run, if there is a choice.
    fn precision(&self, recipe: &Recipe, device: Device) -> Option<String>;

    /// Returns whether a stopped run continues from its last step, so that it is worth waiting for a checkpoint.
    fn has_checkpoints(&self) -> bool;

    /// Refuses a device that this machine does not have.
    fn check_device(&self, _: &Recipe) -> Result<()> {
        Ok(())
    }

    /// Refuses a recipe that cannot be trained here, before a dataset is read.
    fn check(&self, _: &Recipe) -> Result<()> {
        Ok(())
    }

    /// Refuses an existing run that cannot be continued here.
    fn check_run(&self, _: &Path, _: &Recipe) -> Result<()> {
        Ok(())
    }

    /// Refuses several processes for a run that they cannot share; `instead` is the hint.
    fn check_processes(&self, processes: &Processes, instead: &str) -> Result<(), CliError>;

    /// Creates the folder of a run that several processes of this machine will resume from its beginning.
    fn create(&self, _: RunRequest<'_>, _: PreparedRun, _: usize) -> Result<()> {
        Err(one_process().into())
    }

    /// Starts a run, or resumes it if it has begun.
    fn start(&self, training: Training<'_>, prepared: PreparedRun) -> Result<Outcome>;

    /// Resumes a run, with its own recipe or with another one.
    fn resume(&self, training: Training<'_>, run: &Path, recipe: ResumedRecipe) -> Result<Outcome>;

    /// Joins a run that the first process prepares.
    fn follow(&self, _: Training<'_>, _: &Path, _: &Resolved) -> Result<Outcome> {
        Err(one_process().into())
    }

    /// Evaluates a run on its own splits.
    fn evaluate(&self, run: &Path, recipe: Option<Resolved>, device: Option<Device>) -> Result<Evaluated>;
}

/// Returns the refusal of several processes for a run that they cannot share.
fn one_process() -> CliError {
    CliError::invalid("this run is trained in one process")
}

/// The request to train a run in this process.
pub struct Training<'a> {
    /// The sinks and the stop flag.
    pub request: RunRequest<'a>,
    /// The signals of this process.
    pub stop: &'a Stop,
    /// The rank of this process among those that a launcher started.
    pub launch: Option<&'a LaunchInfo>,
    /// The hash of the requested recipe, the same in all processes; `None` to compare the recipe itself.
    pub recipe_hash: Option<String>,
}

/// The recipe with which a run is resumed.
#[derive(Debug)]
pub struct ResumedRecipe {
    pub resolved: Resolved,
    /// Whether the user changed it.
    pub is_changed: bool,
}

impl ResumedRecipe {
    /// Returns the recipe if it is not the run's own.
    pub fn changed(self) -> Option<Resolved> {
        self.is_changed.then_some(self.resolved)
    }
}

/// The outcome of an evaluation.
pub enum Evaluated {
    /// The evaluation with its metrics.
    Done(EvalOutput),
    /// A signal stopped the evaluation.
    Stopped(Exit),
}
