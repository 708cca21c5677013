//! The trainer of heads, on a frozen backbone or on the user's own vectors, and the set of trainers of a program.

use std::path::Path;

use anyhow::Result;
use calmix_heads::evaluate_head::evaluate_head_run;
use calmix_heads::{HeadsError, trainer};
use calmix_lifecycle::start::PreparedRun;
use calmix_recipe::device::Device;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::result::Outcome;
use calmix_run::run::Build;

use super::{Evaluated, ResumedRecipe, Trainer, Training};
use crate::error::CliError;
use crate::error::explained_error::explain;
use crate::model::encoder_trial;
use crate::process::launched::Processes;
use crate::process::stop::Stop;
use crate::process::version;

/// The trainer of heads, in one process and within seconds.
#[derive(Debug)]
pub struct Heads;

impl Trainer for Heads {
    fn build(&self) -> Build {
        version::build(version::features())
    }

    fn device(&self) -> Device {
        Device::Cpu
    }

    fn precision(&self, _: &Recipe, _: Device) -> Option<String> {
        None
    }

    fn has_checkpoints(&self) -> bool {
        false
    }

    fn check(&self, recipe: &Recipe) -> Result<()> {
        if recipe.has_vectors() {
            return Ok(());
        }
        encoder_trial::of_recipe(recipe)?;
        trainer::check(recipe).map_err(explain)
    }

    fn check_run(&self, run: &Path, recipe: &Recipe) -> Result<()> {
        encoder_trial::of_run(run, recipe)
    }

    fn check_processes(&self, processes: &Processes, instead: &str) -> Result<(), CliError> {
        if processes.number() <= 1 {
            return Ok(());
        }
        Err(CliError::invalid("a head is trained in one process, within seconds").hint(instead))
    }

    fn start(&self, training: Training<'_>, prepared: PreparedRun) -> Result<Outcome> {
        trainer::start(training.request, prepared).map_err(explain)
    }

    fn resume(&self, training: Training<'_>, run: &Path, recipe: ResumedRecipe) -> Result<Outcome> {
        trainer::resume(training.request, run, recipe.changed()).map_err(explain)
    }

    fn evaluate(&self, run: &Path, recipe: Option<Resolved>, _: Option<Device>) -> Result<Evaluated> {
        let stop = Stop::listen()?;
        match stop.ending_soon(|| {}, || evaluate_head_run(run, recipe, stop.flag())) {
            Ok(output) => Ok(Evaluated::Done(output)),
            Err(HeadsError::Stopped) => Ok(Evaluated::Stopped(stop.exit())),
            Err(error) => Err(explain(error)),
        }
    }
}

/// The function that finds the fastest device for a network; called only if a folder of images is given with neither a recipe nor
/// a device.
pub type FastestDevice = fn() -> Device;

/// The trainers of a program.
#[derive(Clone, Copy)]
pub struct Trainers<'a> {
    networks: Option<&'a dyn Trainer>,
    /// Finds the fastest device; called if a folder of images is given without a recipe.
    pub fastest: FastestDevice,
}

impl<'a> Trainers<'a> {
    /// Creates the trainer of heads alone.
    pub fn of_heads(fastest: FastestDevice) -> Self {
        Self { networks: None, fastest }
    }

    /// Creates the trainers of heads and of whole networks.
    pub fn of_both(networks: &'a dyn Trainer, fastest: FastestDevice) -> Self {
        Self { networks: Some(networks), fastest }
    }

    /// Returns the trainer of a recipe.
    ///
    /// # Errors
    /// If the recipe trains a whole network, and this program does not.
    pub fn of(&self, recipe: &Recipe) -> Result<&'a dyn Trainer, CliError> {
        if recipe.has_head() || recipe.has_vectors() {
            return Ok(&Heads);
        }
        self.networks.ok_or_else(|| CliError::failed("whole networks are trained by calmix-torch"))
    }
}
