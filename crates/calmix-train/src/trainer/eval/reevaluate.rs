//! Evaluates a run again, from its weights.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_core::rng::Seed;
use calmix_data::loader::Warn;
use calmix_dist::ProcessGroup;
use calmix_engine::device::set_threads;
use calmix_engine::engine::{Engine, EngineSnapshot};
use calmix_engine::loss_scale::LossScale;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_metrics::fitted_calibrator::{Fitted, FittedOn};
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_recipe::{CorruptPolicy, Recipe, Resolved, differences};
use calmix_run::checkpoint::{FoundCheckpoint, newest};
use calmix_run::error::RunError;
use calmix_run::inspect;
use calmix_run::model_info::{LONGEST_METADATA, ModelInfo};
use calmix_run::read;
use calmix_run::run::{Paths, RunFile};

use super::evaluate::{EvalMode, EvalOutput, evaluate_model};
use crate::trainer::data::feature_work::{FeaturePlace, FeatureWork, PageShard};
use crate::trainer::data::frozen_features::{FrozenFeatures, HeadInput};
use crate::trainer::data::train_data::{BeganWith, TrainData};
use crate::trainer::error::TrainError;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::ranks::layout::threads;
use crate::trainer::ranks::step_phase::Watch;
use crate::trainer::step::checkpoint_weights::{check_network, read_weights};
use crate::trainer::step::engine_settings::{model_info, settings};
use crate::trainer::step::memory::MemoryNeed;

/// Evaluates the result of a run again, or its newest checkpoint if it is not finished, with intervals and a
/// calibrator. Metrics are computed from the weights, not read from its files. The calibrator is fitted again, unless the one in
/// `model.json` was refitted on new labels. Nothing is written.
///
/// The recipe is the run's, or another one that differs only in what may change, such as where the dataset is now.
///
/// # Errors
/// If there is no run or nothing to evaluate in it, the recipe has changed, or the dataset is not the one it was trained
/// on.
pub fn evaluate_run(
    folder: &Path,
    recipe: Option<Resolved>,
    device: Option<Device>,
) -> Result<EvalOutput, TrainError> {
    let mut resolved = inspect::recipe(folder)?;
    if let Some(changed) = recipe {
        resolved = same_run(&resolved, changed, folder)?;
    }
    let paths = Paths::new(folder);
    let none = || TrainError::Run(RunError::NoRun { path: paths.checkpoints().to_path_buf() });
    let FoundCheckpoint { checkpoint, .. } = newest(paths.checkpoints())?.ok_or_else(none)?;
    decide(&mut resolved, device)?;
    let recipe = &resolved.recipe;
    let data = TrainData::open(recipe, &paths, Some(&BeganWith::from(&checkpoint.manifest().identity)), 1)?;
    let (data, head) = in_own_features(recipe, data, &paths)?;
    let settings = settings(recipe, data.classes.len(), head.as_ref())?;
    MemoryNeed::of_network(&settings).check(1)?;
    check_network(&checkpoint, &settings)?;
    let mut engine = Engine::new(settings, Seed(recipe.train.seed))?;
    // An evaluation takes no gradient, so no loss is scaled.
    let mut weights = read_weights(&checkpoint, engine.longest_weights(), LossScale::ONE)?;
    let (mut step, mut fitted, mut out_of_fold) = (checkpoint.step(), None, None);
    if let Some(result) = read::result(folder)? {
        let (model, info) = model_of(folder, recipe, &data, &engine, head.as_ref())?;
        step = result.step;
        if head.is_some() {
            // Heads of folds are not kept, but their predictions and their calibrator are.
            let evaluated = result.evaluations.iter().find(|seen| seen.split == EvalSet::OutOfFold);
            out_of_fold = evaluated.map(|seen| read::predictions_of(folder, seen)).transpose()?.flatten();
            fitted = result.uncalibrated.map(Fitted::Nothing);
        }
        let kept = info.calibration.filter(|map| map.fitted_on == FittedOn::Later || head.is_some());
        fitted = kept.map(|map| Fitted::Map(Box::new(map))).or(fitted);
        weights = EngineSnapshot { live: model.clone(), ema: model, ..weights };
    }
    engine.restore(&weights)?;
    // The calibrator was refitted on new labels; the labels of the run evaluate it.
    let out_of_fold = out_of_fold.as_ref();
    let mode = fitted.as_ref().map_or(EvalMode::Final, |fitted| EvalMode::With { fitted, out_of_fold });
    alone(step, |stop| evaluate_model(&engine, recipe, &data, (step, EvalModel::Ema), mode, stop))
}

/// The data of a run as features of its frozen backbone, if it has one. They are computed in memory: those in a folder
/// may have been written by another user.
fn in_own_features(
    recipe: &Recipe,
    data: TrainData,
    paths: &Paths,
) -> Result<(TrainData, Option<HeadInput>), TrainError> {
    if !recipe.has_head() {
        return Ok((data, None));
    }
    let stop = AtomicBool::new(false);
    let mut work = FeatureWork::new(&data, &stop, Arc::new(|_| {}), |_| {});
    let place = FeaturePlace::Memory(paths);
    let mut frozen = FrozenFeatures::open(recipe, place, &data.fingerprint, Arc::clone(&work.warn))?;
    let needed = data.needed_to_evaluate();
    frozen.make(&needed, PageShard::WHOLE, &mut work)?;
    let (views, input) = frozen.load(recipe, &needed, data.classes_of().to_vec(), &mut work)?;
    Ok((data.with_features(views), Some(input)))
}

/// Decides what the recipe of a run leaves open, for this machine.
fn decide(resolved: &mut Resolved, device: Option<Device>) -> Result<(), TrainError> {
    let train = &resolved.recipe.train;
    let device = device.unwrap_or(train.device.or_else(|| Device::Cpu));
    let precision = train.precision.or_else(|| Precision::F32);
    let (threads, shards) = (threads(train.threads, 1), train.shards.max(1));
    resolved.decide(device, precision, threads, shards)?;
    set_threads(resolved.recipe.train.threads as usize);
    Ok(())
}

/// Reads the weights of a finished run and their `model.json`; checks them against each other, the recipe and the classes.
fn model_of(
    folder: &Path,
    recipe: &Recipe,
    data: &TrainData,
    engine: &Engine,
    head: Option<&HeadInput>,
) -> Result<(Vec<u8>, ModelInfo), TrainError> {
    let path = Paths::new(folder).file(RunFile::Model)?;
    let model = safe_open::read(&path, engine.longest_weights() + LONGEST_METADATA)?;
    let info = read::model_info(folder)?;
    let mut found = model_info(recipe, data, &model);
    found.head = head.map(|head| head.info.clone());
    check_model(folder, &info, &found)?;
    Ok((model, info))
}

/// Runs an evaluation on this process alone, without a stop flag.
fn alone<T>(step: u64, run: impl FnOnce(EvalStop<'_>) -> T) -> T {
    let (requested, processes, watch) = (AtomicBool::new(false), ProcessGroup::alone(), Watch::default());
    let warn: Warn = Arc::new(|_| {});
    run(EvalStop { requested: &requested, processes: &processes, watch: &watch, warn: &warn, step })
}

/// Whether the weights are those that the run wrote, for the network, the classes and the images of the run.
fn check_model(folder: &Path, info: &ModelInfo, found: &ModelInfo) -> Result<(), FileError> {
    let Some(problem) = info.difference(found) else { return Ok(()) };
    let path = Paths::new(folder).file(RunFile::ModelInfo)?;
    let hint = "restore model.safetensors and model.json as the run wrote them";
    Err(FileError::new(path, FileProblem::Changed(problem)).hint(hint))
}

/// The changed recipe, if it still is one of the same run.
fn same_run(before: &Resolved, mut now: Resolved, folder: &Path) -> Result<Resolved, TrainError> {
    let changes: Vec<_> = differences(before, &now).into_iter().filter(|change| !change.may_change).collect();
    if !changes.is_empty() {
        return Err(TrainError::Changed { path: folder.to_owned(), changes });
    }
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The table may still be the one in the run's folder: only the files show whether this is the same dataset, and
        // one that is left out would not.
        now.recipe.loader.on_corrupt = CorruptPolicy::Stop;
    }
    Ok(now)
}
