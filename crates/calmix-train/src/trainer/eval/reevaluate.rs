//! Evaluating a run again, from its weights.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_core::rng::Seed;
use calmix_data::loader::Warn;
use calmix_dist::ProcessGroup;
use calmix_engine::device::set_threads;
use calmix_engine::engine::{Engine, EngineSnapshot};
use calmix_engine::optimiser::LossScale;
use calmix_heads::evaluate_head::evaluate_head_run;
use calmix_lifecycle::changes::{RunInputs, changed_recipe};
use calmix_lifecycle::evaluation::{EvalOutput, ignore_progress};
use calmix_lifecycle::run_files::read_model;
use calmix_metrics::fitted_calibrator::{Fitted, FittedOn};
use calmix_metrics::predictions::EvalModel;
use calmix_recipe::Resolved;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_run::checkpoint::{FoundCheckpoint, newest};
use calmix_run::error::RunError;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::run::Paths;

use super::{EvalMode, evaluate_model};
use crate::trainer::data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::step::Watch;
use crate::trainer::step::engine_setup::{MemoryNeed, check_network, read_weights, settings};
use crate::trainer::threads;

/// Evaluates the result of a run again, or the newest checkpoint of an unfinished run, with intervals and a calibrator. Metrics
/// are computed from the weights, not read from the run's files. The calibrator is fitted again, unless that in `model.json` was
/// refitted on new labels. Nothing is written.
///
/// The recipe is the run's, or another one that differs only in keys that may change, such as the path of the dataset.
///
/// # Errors
/// If there is no run or nothing to evaluate in it, the recipe has changed, or the dataset is not the one it was trained on.
pub fn evaluate_run(
    folder: &Path,
    recipe: Option<Resolved>,
    device: Option<Device>,
) -> Result<EvalOutput, TrainError> {
    let mut resolved = inspect::recipe(folder)?;
    if resolved.recipe.has_head() {
        return Ok(evaluate_head_run(folder, recipe, &AtomicBool::new(false))?);
    }
    if let Some(changed) = recipe {
        resolved = changed_recipe(&resolved, changed, folder)?;
    }
    let paths = Paths::new(folder);
    let none = || RunError::NoRun { path: paths.checkpoints().to_path_buf() };
    let FoundCheckpoint { checkpoint, .. } = newest(paths.checkpoints())?.ok_or_else(none)?;
    decide(&mut resolved, device)?;
    let recipe = &resolved.recipe;
    let data = TrainData::open(recipe, &paths, Some(&RunInputs::from(&checkpoint.manifest().identity)), 1)?;
    let settings = settings(recipe, data.samples.classes.len())?;
    MemoryNeed::of_network(&settings).check(1)?;
    check_network(&checkpoint, &settings)?;
    let mut engine = Engine::new(settings, Seed(recipe.train.seed))?;
    // An evaluation computes no gradient, so the loss scale does not matter.
    let mut weights = read_weights(&checkpoint, engine.max_weights_bytes(), LossScale::ONE)?;
    let mut step = checkpoint.step();
    let mut fitted = None;
    if let Some(result) = read::result(folder)? {
        let max_bytes = engine.max_weights_bytes();
        let (model, info) = read_model(folder, max_bytes, recipe, &data.samples, None)?;
        step = result.step;
        // A calibrator that was refitted on new labels is kept, and evaluated on the labels of the run.
        let kept = info.calibration.filter(|map| map.fitted_on == FittedOn::Later);
        fitted = kept.map(|map| Fitted::Calibrator(Box::new(map)));
        weights = EngineSnapshot { weights: model.clone(), ema: model, ..weights };
    }
    engine.restore(&weights)?;
    let mode = fitted.as_ref().map_or(EvalMode::Final, EvalMode::With);
    alone(step, |stop| evaluate_model(&engine, recipe, &data, (step, EvalModel::Ema), mode, stop))
}

/// Sets the keys that the recipe of a run leaves open, for this machine.
fn decide(resolved: &mut Resolved, device: Option<Device>) -> Result<(), TrainError> {
    let train = &resolved.recipe.train;
    let device = device.unwrap_or(train.device.or_else(|| Device::Cpu));
    let precision = train.precision.or_else(|| Precision::F32);
    let (threads, micro_batches) = (threads(train.threads, 1), train.micro_batches.max(1));
    resolved.decide(device, precision, threads, micro_batches)?;
    set_threads(resolved.recipe.train.threads as usize);
    Ok(())
}

/// Runs an evaluation in this process alone, without a stop flag.
fn alone<T>(step: u64, run: impl FnOnce(EvalStop<'_>) -> T) -> T {
    let (requested, processes, watch) = (AtomicBool::new(false), ProcessGroup::alone(), Watch::default());
    let warn: Warn = Arc::new(|_| {});
    let work = &ignore_progress;
    run(EvalStop { requested: &requested, processes: &processes, watch: &watch, warn: &warn, work, step })
}
