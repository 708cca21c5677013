//! How far a run is, with its recipe: no lock is taken and nothing is written.

use std::path::Path;

use calmix_run::checkpoint::{SkippedCheckpoint, newest};
use calmix_run::read;
use calmix_run::result::RunResult;
use calmix_run::run::{Paths, RunEnvironment, RunError, RunFile};

use crate::recipe::{Layers, Resolved};
use crate::trainer::TrainError;

/// How far a run is.
#[derive(Debug)]
pub struct Inspected {
    /// Its recipe.
    pub recipe: Resolved,
    /// What it was made with.
    pub environment: RunEnvironment,
    /// The step of the newest checkpoint that can be used; none before the first.
    pub step: Option<u64>,
    /// Newer checkpoints that cannot be used.
    pub skipped: Vec<SkippedCheckpoint>,
    /// Its result, once it is finished.
    pub result: Option<RunResult>,
}

/// How far the run in a folder is.
///
/// # Errors
/// If there is no run, or its files are damaged.
pub fn inspect(folder: &Path) -> Result<Inspected, TrainError> {
    let (recipe, environment) = (recipe(folder)?, read::environment(folder)?);
    let found = newest(&Paths::new(folder).checkpoints())?;
    let step = found.as_ref().map(|found| found.checkpoint.step());
    let skipped = found.map(|found| found.skipped).unwrap_or_default();
    Ok(Inspected { recipe, environment, step, skipped, result: read::result(folder)? })
}

/// The recipe of a run.
///
/// # Errors
/// If there is no run that has begun, or its recipe cannot be read.
pub fn recipe(folder: &Path) -> Result<Resolved, TrainError> {
    Ok(recipe_layers(folder)?.resolve()?)
}

/// The recipe of a run, for settings to be laid over it.
///
/// # Errors
/// As [`recipe`], except that what its text says is not checked yet.
pub fn recipe_layers(folder: &Path) -> Result<Layers, TrainError> {
    if !read::has_begun(folder) {
        return Err(RunError::NoRun { path: folder.to_owned() }.into());
    }
    Ok(Layers::new().text(&Paths::new(folder).file(RunFile::Recipe)?, &read::recipe(folder)?))
}
