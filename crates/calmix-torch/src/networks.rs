//! The trainer of whole networks, on libtorch.

use std::path::Path;

use anyhow::{Error, Result};
use calmix::error::CliError;
use calmix::error::explained_error::{explain, explain_lifecycle, refused};
use calmix::lifecycle::request::RunRequest;
use calmix::lifecycle::start::PreparedRun;
use calmix::process::launched::Processes;
use calmix::process::version;
use calmix::recipe::device::Device;
use calmix::recipe::{OrAuto, Recipe, Resolved};
use calmix::run::result::Outcome;
use calmix::run::run::Build;
use calmix::trainer::{Evaluated, ResumedRecipe, Trainer, Training};
use calmix_engine::{device, precision};
use calmix_train::trainer::{self, TrainError, evaluate_run};

/// The trainer of whole networks, in one process or several.
#[derive(Debug)]
pub(crate) struct Networks;

impl Trainer for Networks {
    fn build(&self) -> Build {
        version::build(features())
    }

    fn device(&self) -> Device {
        device::fastest()
    }

    fn precision(&self, recipe: &Recipe, device: Device) -> Option<String> {
        let precision = recipe.train.precision.or_else(|| precision::best(device));
        Some(format!("{precision:?}").to_lowercase())
    }

    fn has_checkpoints(&self) -> bool {
        true
    }

    fn check_device(&self, recipe: &Recipe) -> Result<()> {
        if let OrAuto::Is(device) = recipe.train.device {
            device::check(device)
                .map_err(|error| CliError::invalid(error.to_string()).hint("calmix doctor"))?;
        }
        Ok(())
    }

    fn check_processes(&self, processes: &Processes, _: &str) -> Result<(), CliError> {
        processes.refuse_both()
    }

    fn create(&self, request: RunRequest<'_>, prepared: PreparedRun, processes: usize) -> Result<()> {
        trainer::Trainer::new(request).create(prepared, processes).map(drop).map_err(explained)
    }

    fn start(&self, training: Training<'_>, prepared: PreparedRun) -> Result<Outcome> {
        let joined = joined(training, &prepared.resolved.recipe).map_err(explained)?;
        joined.start_prepared(prepared).map_err(explained)
    }

    fn resume(&self, training: Training<'_>, run: &Path, recipe: ResumedRecipe) -> Result<Outcome> {
        let joined = joined(training, &recipe.resolved.recipe).map_err(explained)?;
        joined.resume(run, recipe.changed().as_ref()).map_err(explained)
    }

    fn follow(&self, training: Training<'_>, run: &Path, recipe: &Resolved) -> Result<Outcome> {
        let joined = joined(training, &recipe.recipe).map_err(explained)?;
        joined.start_or_resume(recipe, run).map_err(explained)
    }

    fn evaluate(&self, run: &Path, recipe: Option<Resolved>, device: Option<Device>) -> Result<Evaluated> {
        evaluate_run(run, recipe, device).map(Evaluated::Done).map_err(explained)
    }
}

/// Creates the trainer of this process, connected to those that a launcher started.
fn joined<'a>(training: Training<'a>, recipe: &Recipe) -> Result<trainer::Trainer<'a>, TrainError> {
    let Training { request, stop, launch, recipe_hash } = training;
    let trainer = trainer::Trainer::new(request);
    let Some(launch) = launch else { return Ok(trainer) };
    let trainer = stop.ending_at_signal(|| trainer.join(launch, recipe))?;
    Ok(match recipe_hash {
        Some(hash) => trainer.recipe_hash(hash),
        None => trainer,
    })
}

/// Replaces a training error by one that the command line can report.
fn explained(error: TrainError) -> Error {
    match error {
        TrainError::Lifecycle(error) => explain_lifecycle(error),
        TrainError::Heads(error) => explain(*error),
        error => refused(error.kind(), &error.into(), None),
    }
}

/// Returns the optional features of this program.
pub(crate) fn features() -> impl Iterator<Item = &'static str> {
    let all = [
        ("cloud", cfg!(feature = "cloud")),
        ("https", cfg!(feature = "https")),
        ("jemalloc", cfg!(feature = "jemalloc")),
        ("nccl", cfg!(feature = "nccl")),
        ("raster", cfg!(feature = "raster")),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name)
}
