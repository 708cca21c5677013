//! Reads the state and recipe of a run, without taking a lock or writing anything.

use std::path::Path;

use calmix_recipe::{Difference, Layers, Resolved, differences};

use crate::checkpoint::{SkippedCheckpoint, newest};
use crate::error::RunError;
use crate::read;
use crate::result::RunResult;
use crate::run::{Paths, RunEnvironment, RunFile};
use crate::summary::RunSummary;

/// The state of a run.
#[derive(Debug)]
pub struct Inspected {
    /// Its recipe.
    pub recipe: Resolved,
    /// Its dataset, method and network.
    pub summary: RunSummary,
    /// The differences from the built-in recipe that it is based on; `None` if this version has no such recipe.
    pub changes: Option<Vec<Difference>>,
    /// The environment in which it was made.
    pub environment: RunEnvironment,
    /// The step of the newest usable checkpoint; `None` before the first one.
    pub step: Option<u64>,
    /// Newer checkpoints that are unusable.
    pub skipped: Vec<SkippedCheckpoint>,
    /// Its result, if it is finished.
    pub result: Option<RunResult>,
}

/// Reads the state of the run in a folder.
pub fn inspect(folder: &Path) -> Result<Inspected, RunError> {
    let recipe = recipe(folder)?;
    let environment = read::environment(folder).map_err(RunError::of_run_file)?;
    let summary = read::summary(folder).map_err(RunError::of_run_file)?;
    let changes = summary.based_on.as_deref().and_then(|name| changes(name, &recipe));
    let found = newest(Paths::new(folder).checkpoints())?;
    let step = found.as_ref().map(|found| found.checkpoint.step());
    let skipped = found.map(|found| found.skipped).unwrap_or_default();
    let result = read::result(folder).map_err(RunError::of_run_file)?;
    Ok(Inspected { recipe, summary, changes, environment, step, skipped, result })
}

/// Keys that are set when a run starts, and that built-in recipes leave open.
const SET_AT_START: [&str; 6] = [
    "dataset.path",
    "dataset.prepared",
    "train.device",
    "train.precision",
    "train.threads",
    "train.micro_batches",
];

/// Lists the keys in which a run's recipe differs from a built-in one, except keys that the built-in one leaves open.
fn changes(name: &str, recipe: &Resolved) -> Option<Vec<Difference>> {
    let base = Layers::new().recipe(name).resolve().ok()?;
    let default = Layers::new().resolve().ok()?;
    // The description changes nothing, and the hash belongs to the weights that network.weights names.
    let is_open = |path: &str| {
        ["description", "network.weights_hash"].contains(&path)
            || SET_AT_START.contains(&path) && base.value(path) == default.value(path)
    };
    Some(differences(&base, recipe).into_iter().filter(|change| !is_open(&change.path)).collect())
}

/// Lists the keys that a recipe would change although they are fixed in a run that has started. Keys that are set when a run
/// starts do not count.
pub fn changes_of_run(folder: &Path, requested: &Resolved) -> Result<Vec<Difference>, RunError> {
    let default = Layers::new().resolve()?;
    let is_open = |path: &str| SET_AT_START.contains(&path) && requested.value(path) == default.value(path);
    let changes = differences(&recipe(folder)?, requested).into_iter();
    Ok(changes.filter(|change| !change.may_change && !is_open(&change.path)).collect())
}

/// Reads the recipe of a run.
pub fn recipe(folder: &Path) -> Result<Resolved, RunError> {
    Ok(stored_layers(folder)?.resolve()?)
}

/// Reads the recipe of a run for resuming it, as a layer below the user's settings. A run may come from an untrusted source,
/// so its recipe must not decide where to write: `network.cache` is empty, which means the run's own folder, until the user
/// names another.
pub fn recipe_layers(folder: &Path) -> Result<Layers, RunError> {
    Ok(stored_layers(folder)?.without("network.cache"))
}

fn stored_layers(folder: &Path) -> Result<Layers, RunError> {
    if !read::has_begun(folder) {
        return Err(RunError::NoRun { path: folder.to_owned() });
    }
    let path = Paths::new(folder).file(RunFile::Recipe).map_err(RunError::of_run_file)?;
    let text = read::recipe(folder).map_err(RunError::of_run_file)?;
    Ok(Layers::new().text(&path, &text))
}
