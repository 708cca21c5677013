//! A run judged once more, from its weights.

use std::path::Path;

use calmix_core::rng::Seed;
use calmix_data::error::DataError;
use calmix_dist::Processes;
use calmix_engine::device::{Device, set_threads};
use calmix_engine::engine::{Engine, Snapshot};
use calmix_engine::precision::Precision;

use super::checkpoint_files;
use super::engine_settings::settings;
use super::error::TrainError;
use super::judge::{Care, Verdict, judge};
use super::material::Material;
use super::threads;
use crate::checkpoint::{Found, newest};
use crate::events::Model;
use crate::inspect;
use crate::recipe::{OnCorrupt, Resolved, differences};
use crate::run::{Paths, RunError, RunFile};

/// Judges the result of a run once more, or where it is not finished its newest checkpoint, with intervals and a
/// temperature: figures from the weights, whatever the run said about itself. Nothing is written.
///
/// The recipe is the run's, or another one that differs only in what may change, such as where the dataset is now.
///
/// # Errors
/// If there is no run or nothing to judge in it, the recipe has changed, or the dataset is not the one it was trained
/// on.
pub fn evaluate_run(
    folder: &Path,
    recipe: Option<Resolved>,
    device: Option<Device>,
) -> Result<Verdict, TrainError> {
    let mut resolved = inspect::recipe(folder)?;
    if let Some(changed) = recipe {
        resolved = same_run(&resolved, changed, folder)?;
    }
    let paths = Paths::new(folder);
    let none = || TrainError::Run(RunError::NoRun { path: paths.checkpoints() });
    let Found { checkpoint, .. } = newest(&paths.checkpoints())?.ok_or_else(none)?;
    let train = &resolved.recipe.train;
    let device = device.unwrap_or(train.device.or_else(|| Device::Cpu));
    let precision = train.precision.or_else(|| Precision::F32);
    let threads = threads(train.threads, 1);
    let shards = train.shards.max(1);
    resolved.decide(device, precision, threads, shards)?;
    let recipe = &resolved.recipe;
    set_threads(recipe.train.threads as usize);
    let material = Material::open(recipe, &paths, Some(&checkpoint.manifest().identity.dataset), 1)?;
    let mut engine = Engine::new(settings(recipe, material.classes.len())?, Seed(recipe.train.seed))?;
    let mut weights = checkpoint_files::weights(&checkpoint)?;
    let mut step = checkpoint.step();
    if let Some(result) = inspect::result(folder)? {
        let path = paths.file(RunFile::Model)?;
        let model = std::fs::read(&path).map_err(|error| DataError::new(path, error))?;
        step = result.step;
        weights = Snapshot { live: model.clone(), ema: model, ..weights };
    }
    engine.restore(&weights)?;
    judge(&engine, &Processes::alone(), recipe, &material, (step, Model::Ema), Care::Final)
}

/// The changed recipe, if it still is one of the same run.
fn same_run(before: &Resolved, mut now: Resolved, folder: &Path) -> Result<Resolved, TrainError> {
    let changes: Vec<_> = differences(before, &now).into_iter().filter(|change| !change.may_change).collect();
    if !changes.is_empty() {
        return Err(TrainError::Changed { path: folder.to_owned(), changes });
    }
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The table may still be the one in the run's folder: only the files tell whether this is the same dataset, and
        // one that is left out would not.
        now.recipe.loader.on_corrupt = OnCorrupt::Stop;
    }
    Ok(now)
}
