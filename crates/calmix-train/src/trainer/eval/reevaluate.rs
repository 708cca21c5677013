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
use calmix_run::head_files::{longest_head, read_head};
use calmix_run::inspect;
use calmix_run::model_info::{HeadInfo, LONGEST_METADATA, ModelInfo};
use calmix_run::read;
use calmix_run::run::{Paths, RunEnvironment, RunFile};
use calmix_vectors::VectorsError;
use calmix_vectors::evaluate_head::HeadEvaluator;
use calmix_vectors::evaluation::EvalOutput;
use calmix_vectors::head_vectors::HeadVectors;
use calmix_vectors::run_samples::BeganWith;

use super::evaluate::{EvalMode, evaluate_model};
use crate::trainer::data::feature_work::{FeaturePlace, FeatureWork, PageShard};
use crate::trainer::data::frozen_features::FrozenFeatures;
use crate::trainer::data::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::ranks::step_phase::Watch;
use crate::trainer::step::checkpoint_weights::{check_network, read_weights};
use crate::trainer::step::engine_settings::settings;
use crate::trainer::step::memory::MemoryNeed;
use crate::trainer::threads;

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
    if resolved.recipe.has_vectors() {
        let sentence = "a run on vectors cannot be evaluated again; `calmix inspect` shows its metrics";
        return Err(TrainError::Unsupported(sentence.to_owned()));
    }
    if resolved.recipe.has_head() {
        return evaluate_head_run(folder, resolved, device);
    }
    let paths = Paths::new(folder);
    let none = || TrainError::Run(RunError::NoRun { path: paths.checkpoints().to_path_buf() });
    let FoundCheckpoint { checkpoint, .. } = newest(paths.checkpoints())?.ok_or_else(none)?;
    decide(&mut resolved, device)?;
    let recipe = &resolved.recipe;
    let data = TrainData::open(recipe, &paths, Some(&BeganWith::from(&checkpoint.manifest().identity)), 1)?;
    let settings = settings(recipe, data.samples.classes.len())?;
    MemoryNeed::of_network(&settings).check(1)?;
    check_network(&checkpoint, &settings)?;
    let mut engine = Engine::new(settings, Seed(recipe.train.seed))?;
    // An evaluation takes no gradient, so no loss is scaled.
    let mut weights = read_weights(&checkpoint, engine.longest_weights(), LossScale::ONE)?;
    let mut step = checkpoint.step();
    let mut fitted = None;
    if let Some(result) = read::result(folder)? {
        let longest = engine.longest_weights();
        let (model, info) = model_of(folder, longest, model_info_of(recipe, &data, None))?;
        step = result.step;
        // It was refitted on new labels; the labels of the run evaluate it.
        let kept = info.calibration.filter(|map| map.fitted_on == FittedOn::Later);
        fitted = kept.map(|map| Fitted::Map(Box::new(map)));
        weights = EngineSnapshot { live: model.clone(), ema: model, ..weights };
    }
    engine.restore(&weights)?;
    let mode = fitted.as_ref().map_or(EvalMode::Final, EvalMode::With);
    alone(step, |stop| evaluate_model(&engine, recipe, &data, (step, EvalModel::Ema), mode, stop))
}

/// Evaluates the head of a finished run again. Heads of folds are not kept, but their predictions and their calibrator are.
fn evaluate_head_run(
    folder: &Path,
    mut resolved: Resolved,
    device: Option<Device>,
) -> Result<EvalOutput, TrainError> {
    let result = read::result(folder)?.ok_or_else(|| TrainError::Unfinished { path: folder.to_owned() })?;
    decide(&mut resolved, device)?;
    let recipe = &resolved.recipe;
    let paths = Paths::new(folder);
    let RunEnvironment { dataset, split, .. } = read::environment(folder)?;
    let data = TrainData::open(recipe, &paths, Some(&BeganWith { dataset, split }), 1)?;
    let vectors = own_vectors(recipe, &data, &paths)?;
    let shape = vectors.info.shape(data.samples.classes.len());
    let info = Some(vectors.info.clone());
    let (model, info) = model_of(folder, longest_head(shape), model_info_of(recipe, &data, info))?;
    let path = paths.file(RunFile::Model)?;
    let head = read_head(&model, shape).map_err(|problem| FileError::new(path, problem))?;
    let evaluated = result.evaluations.iter().find(|seen| seen.split == EvalSet::OutOfFold);
    let out_of_fold = evaluated.map(|seen| read::predictions_of(folder, seen)).transpose()?.flatten();
    let calibrator = info.calibration.map(|map| Fitted::Map(Box::new(map)));
    let calibrator = calibrator.or_else(|| result.uncalibrated.map(Fitted::Nothing));
    let calibrator = calibrator.ok_or_else(|| TrainError::Unfinished { path: folder.to_owned() })?;
    let stop = AtomicBool::new(false);
    let evaluator = HeadEvaluator { recipe, samples: &data.samples, vectors: &vectors, stop: &stop };
    Ok(evaluator.evaluate(result.step, &head, &calibrator, out_of_fold.as_ref())?)
}

/// The vectors that the head of a run is evaluated on. Features are computed in memory: those in a folder may have been
/// written by another user.
fn own_vectors(recipe: &Recipe, data: &TrainData, paths: &Paths) -> Result<HeadVectors, TrainError> {
    let stop = AtomicBool::new(false);
    let mut work = FeatureWork::new(data, &stop, Arc::new(|_| {}), |_| {});
    let place = FeaturePlace::Memory(paths);
    let mut frozen = FrozenFeatures::open(recipe, place, &data.samples.fingerprint, Arc::clone(&work.warn))?;
    let needed = data.samples.needed_to_evaluate();
    frozen.make(&needed, PageShard::WHOLE, &mut work)?;
    frozen.load(recipe, &needed, &mut work)
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

/// Reads the weights of a finished run, of at most `longest` bytes without their metadata, and their `model.json`; checks
/// both against what the recipe and the classes say.
fn model_of(
    folder: &Path,
    longest: u64,
    wanted: impl FnOnce(&[u8]) -> ModelInfo,
) -> Result<(Vec<u8>, ModelInfo), TrainError> {
    let path = Paths::new(folder).file(RunFile::Model)?;
    let model = safe_open::read(&path, longest + LONGEST_METADATA)?;
    let info = read::model_info(folder)?;
    check_model(folder, &info, &wanted(&model))?;
    Ok((model, info))
}

/// What `model.json` has to say about weights of this run.
fn model_info_of<'a>(
    recipe: &'a Recipe,
    data: &'a TrainData,
    head: Option<HeadInfo>,
) -> impl FnOnce(&[u8]) -> ModelInfo + 'a {
    let samples = &data.samples;
    move |weights| ModelInfo { head, ..ModelInfo::new(recipe, &samples.classes, samples.shrunk(), weights) }
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
        return Err(VectorsError::Changed { path: folder.to_owned(), changes }.into());
    }
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The table may still be the one in the run's folder: only the files show whether this is the same dataset, and
        // one that is left out would not.
        now.recipe.loader.on_corrupt = CorruptPolicy::Stop;
    }
    Ok(now)
}
