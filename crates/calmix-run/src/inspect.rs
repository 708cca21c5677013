//! The state of a run and its recipe. Takes no lock and writes nothing.

use std::path::Path;

use calmix_io::error::{ErrorKind, FileError};
use calmix_recipe::{Difference, Layers, RecipeError, Resolved, differences};

use crate::checkpoint::{CheckpointError, SkippedCheckpoint, newest};
use crate::read;
use crate::result::RunResult;
use crate::run::{Paths, RunEnvironment, RunError, RunFile};
use crate::summary::RunSummary;

/// Why the state of a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The recipe is invalid.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The run folder cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the run cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl InspectError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Recipe(error) => error.kind(),
            Self::Run(error) => error.kind(),
            // The paths of a run are its own: one that is wrong is damage.
            Self::File(error) if error.is_transient() => ErrorKind::Transient,
            Self::File(_) => ErrorKind::Failure,
            Self::Checkpoint(error) => error.kind(),
        }
    }
}

/// The state of a run.
#[derive(Debug)]
pub struct Inspected {
    /// The recipe of the run.
    pub recipe: Resolved,
    /// Its dataset, method and network.
    pub summary: RunSummary,
    /// What differs from the built-in recipe that it is based on; `None` if this version has no such recipe.
    pub changes: Option<Vec<Difference>>,
    /// The environment that it was made with.
    pub environment: RunEnvironment,
    /// The step of the newest usable checkpoint; `None` before the first.
    pub step: Option<u64>,
    /// Newer checkpoints that cannot be used.
    pub skipped: Vec<SkippedCheckpoint>,
    /// Its result, once it is finished.
    pub result: Option<RunResult>,
}

/// Reads the state of the run in a folder.
///
/// # Errors
/// If there is no run, or its files are damaged.
pub fn inspect(folder: &Path) -> Result<Inspected, InspectError> {
    let (recipe, environment) = (recipe(folder)?, read::environment(folder)?);
    let summary = read::summary(folder)?;
    let changes = summary.based_on.as_deref().and_then(|name| changes(name, &recipe));
    let found = newest(Paths::new(folder).checkpoints())?;
    let step = found.as_ref().map(|found| found.checkpoint.step());
    let skipped = found.map(|found| found.skipped).unwrap_or_default();
    let result = read::result(folder)?;
    Ok(Inspected { recipe, summary, changes, environment, step, skipped, result })
}

/// Keys that are set when a run starts, and that no built-in recipe sets.
const DECIDED: [&str; 6] =
    ["dataset.path", "dataset.prepared", "train.device", "train.precision", "train.threads", "train.shards"];

/// Lists what a run's recipe changes of a built-in one. A key that the built-in one leaves open is not a change.
fn changes(name: &str, recipe: &Resolved) -> Option<Vec<Difference>> {
    let base = Layers::new().recipe(name).resolve().ok()?;
    let default = Layers::new().resolve().ok()?;
    // A description changes nothing, and the hash is that of the weights that network.weights names.
    let is_open = |path: &str| {
        ["description", "network.weights_hash"].contains(&path)
            || DECIDED.contains(&path) && base.value(path) == default.value(path)
    };
    Some(differences(&base, recipe).into_iter().filter(|change| !is_open(&change.path)).collect())
}

/// Lists the keys that a recipe would change and that may not change in a run that has begun. A key that is set when a run
/// starts is not a change.
///
/// # Errors
/// As [`recipe()`].
pub fn changes_of_run(folder: &Path, asked: &Resolved) -> Result<Vec<Difference>, InspectError> {
    let default = Layers::new().resolve()?;
    let is_open = |path: &str| DECIDED.contains(&path) && asked.value(path) == default.value(path);
    let changes = differences(&recipe(folder)?, asked).into_iter();
    Ok(changes.filter(|change| !change.may_change && !is_open(&change.path)).collect())
}

/// Reads the recipe of a run.
///
/// # Errors
/// If there is no run that has begun, or its recipe cannot be read.
pub fn recipe(folder: &Path) -> Result<Resolved, InspectError> {
    Ok(written_layers(folder)?.resolve()?)
}

/// Reads the recipe of a run to resume it, for settings to be laid over it. A run may come from an untrusted source, so its
/// recipe does not decide where to write: `network.cache` is empty, which means the run's own folder, until the user names
/// another.
///
/// # Errors
/// As [`recipe`], except that its values are not checked yet.
pub fn recipe_layers(folder: &Path) -> Result<Layers, InspectError> {
    Ok(written_layers(folder)?.without("network.cache"))
}

fn written_layers(folder: &Path) -> Result<Layers, InspectError> {
    if !read::has_begun(folder) {
        return Err(RunError::NoRun { path: folder.to_owned() }.into());
    }
    Ok(Layers::new().text(&Paths::new(folder).file(RunFile::Recipe)?, &read::recipe(folder)?))
}
