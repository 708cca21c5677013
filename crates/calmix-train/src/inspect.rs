//! How far a run is, with its recipe: no lock is taken and nothing is written.

use std::path::Path;

use calmix_recipe::{Difference, Layers, Resolved, differences};
use calmix_run::checkpoint::{SkippedCheckpoint, newest};
use calmix_run::read;
use calmix_run::result::RunResult;
use calmix_run::run::{Paths, RunEnvironment, RunError, RunFile};
use calmix_run::summary::RunSummary;

use crate::trainer::TrainError;

/// How far a run is.
#[derive(Debug)]
pub struct Inspected {
    /// Its recipe.
    pub recipe: Resolved,
    /// What it is.
    pub summary: RunSummary,
    /// What differs from the built-in recipe that it was made from; none where no such recipe is known.
    pub changes: Option<Vec<Difference>>,
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
    let summary = read::summary(folder)?;
    let changes = summary.based_on.as_deref().and_then(|name| changes(name, &recipe));
    let found = newest(Paths::new(folder).checkpoints())?;
    let step = found.as_ref().map(|found| found.checkpoint.step());
    let skipped = found.map(|found| found.skipped).unwrap_or_default();
    let result = read::result(folder)?;
    Ok(Inspected { recipe, summary, changes, environment, step, skipped, result })
}

/// Keys that a run decides or is told where it starts, and that no recipe knows.
const DECIDED: [&str; 6] =
    ["dataset.path", "dataset.prepared", "train.device", "train.precision", "train.threads", "train.shards"];

/// What a run's recipe has changed of a built-in one. What the built-in one leaves open is not a change.
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

/// What a recipe would change of a run that has begun, of what may not change. What it leaves to the start of the run is no
/// change.
///
/// # Errors
/// As [`recipe()`].
pub fn changes_of_run(folder: &Path, asked: &Resolved) -> Result<Vec<Difference>, TrainError> {
    let default = Layers::new().resolve()?;
    let is_open = |path: &str| DECIDED.contains(&path) && asked.value(path) == default.value(path);
    let changes = differences(&recipe(folder)?, asked).into_iter();
    Ok(changes.filter(|change| !change.may_change && !is_open(&change.path)).collect())
}

/// The recipe of a run.
///
/// # Errors
/// If there is no run that has begun, or its recipe cannot be read.
pub fn recipe(folder: &Path) -> Result<Resolved, TrainError> {
    Ok(written_layers(folder)?.resolve()?)
}

/// The recipe of a run to go on with, for settings to be laid over it. A run may come from somebody else, so its recipe does
/// not say where to write: `network.cache` is empty, which means the run's own folder, until the user names another.
///
/// # Errors
/// As [`recipe`], except that what its text says is not checked yet.
pub fn recipe_layers(folder: &Path) -> Result<Layers, TrainError> {
    Ok(written_layers(folder)?.without("network.cache"))
}

fn written_layers(folder: &Path) -> Result<Layers, TrainError> {
    if !read::has_begun(folder) {
        return Err(RunError::NoRun { path: folder.to_owned() }.into());
    }
    Ok(Layers::new().text(&Paths::new(folder).file(RunFile::Recipe)?, &read::recipe(folder)?))
}
