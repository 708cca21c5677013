//! Evaluates the head of a finished run again, from its weights: metrics are computed, not read from its files.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::{CorruptPolicy, Recipe, Resolved, differences};
use calmix_run::model_info::{HeadInfo, LONGEST_METADATA, ModelInfo};
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::RunResult;
use calmix_run::run::{Paths, RunEnvironment, RunFile};
use calmix_run::sink::Work;
use calmix_run::tensor_files::head_files::{longest_head, read_head};

use crate::error::VectorsError;
use crate::evaluate_head::HeadEvaluator;
use crate::evaluation::EvalOutput;
use crate::head_runtime::{check_head_of, decide_head};
use crate::images::make_features::vectors_to_evaluate;
use crate::read_vectors::read_vectors;
use crate::run_samples::{BeganWith, RunSamples};
use crate::threads::threads;
use crate::vector_table::TablePlace;
use crate::work_count::{WorkCount, ignore_progress};

/// Evaluates the head of a finished run again, on the splits of its own dataset. Nothing is written.
///
/// The recipe is the run's, or another one that differs only in what may change, such as where the dataset is now.
///
/// # Errors
/// If the run has not finished, the recipe has changed, or the vectors or images are not those it was trained on;
/// [`VectorsError::Stopped`] if `stop` becomes true.
pub fn evaluate_head_run(
    folder: &Path,
    recipe: Option<Resolved>,
    stop: &AtomicBool,
) -> Result<EvalOutput, VectorsError> {
    let mut resolved = inspect::recipe(folder)?;
    if let Some(changed) = recipe {
        resolved = same_run(&resolved, changed, folder)?;
    }
    check_head_of(folder, &resolved.recipe)?;
    let result = finished(folder)?;
    let threads = threads(resolved.recipe.train.threads, 1);
    decide_head(&mut resolved, threads)?;
    let recipe = &resolved.recipe;
    let paths = Paths::new(folder);
    let RunEnvironment { dataset, split, .. } = read::environment(folder)?;
    let samples = RunSamples::open(recipe, &paths, Some(&BeganWith { dataset, split }))?;
    let vectors = if recipe.has_vectors() {
        let needed = samples.needed_to_evaluate();
        read_vectors(recipe, &samples.dataset, &needed, &paths, TablePlace::MEMORY, stop)?
    } else {
        vectors_to_evaluate(recipe, &samples, &paths, stop)?
    };
    let evaluator = HeadEvaluator { recipe, samples: &samples, vectors: &vectors, stop };
    evaluate_again(folder, &result, evaluator)
}

/// The result of a run.
///
/// # Errors
/// If the run has not finished, or the result cannot be read.
fn finished(folder: &Path) -> Result<RunResult, VectorsError> {
    read::result(folder)?.ok_or_else(|| VectorsError::Unfinished { path: folder.to_owned() })
}

/// Evaluates the head of a finished run. Heads of folds are not kept, but their predictions and their calibrator are.
///
/// # Errors
/// If the files of its model are not those that the run wrote, or its vectors cannot be evaluated.
fn evaluate_again(
    folder: &Path,
    result: &RunResult,
    evaluator: HeadEvaluator<'_>,
) -> Result<EvalOutput, VectorsError> {
    let HeadEvaluator { recipe, samples, vectors, .. } = evaluator;
    let shape = vectors.info.shape(samples.classes.len());
    let head = Some(vectors.info.clone());
    let (model, info) = model_of(folder, longest_head(shape), recipe, samples, head)?;
    let path = Paths::new(folder).file(RunFile::Model)?;
    let head = read_head(&model, shape).map_err(|problem| FileError::new(path, problem))?;
    let evaluated = result.evaluations.iter().find(|seen| seen.split == EvalSet::OutOfFold);
    let out_of_fold = evaluated.map(|seen| read::predictions_of(folder, seen)).transpose()?.flatten();
    let calibrator = info.calibration.map(|map| Fitted::Map(Box::new(map)));
    let calibrator = calibrator.or_else(|| result.uncalibrated.map(Fitted::Nothing));
    let calibrator = calibrator.ok_or_else(|| VectorsError::Unfinished { path: folder.to_owned() })?;
    let mut count = WorkCount::begin(&ignore_progress, Work::Intervals, 0);
    evaluator.evaluate(result.step, &head, &calibrator, out_of_fold.as_ref(), &mut count)
}

/// Reads the weights of a finished run, of at most `longest` bytes without their metadata, and their `model.json`; checks
/// both against what the recipe and the samples say.
///
/// # Errors
/// If they are not the weights that the run wrote, for its network, its classes and its samples.
pub fn model_of(
    folder: &Path,
    longest: u64,
    recipe: &Recipe,
    samples: &RunSamples,
    head: Option<HeadInfo>,
) -> Result<(Vec<u8>, ModelInfo), VectorsError> {
    let path = Paths::new(folder).file(RunFile::Model)?;
    let model = safe_open::read(&path, longest + LONGEST_METADATA)?;
    let info = read::model_info(folder)?;
    let wanted = ModelInfo { head, ..ModelInfo::new(recipe, &samples.classes, samples.shrunk(), &model) };
    let Some(problem) = info.difference(&wanted) else { return Ok((model, info)) };
    let path = Paths::new(folder).file(RunFile::ModelInfo)?;
    let hint = "restore model.safetensors and model.json as the run wrote them";
    Err(FileError::new(path, FileProblem::Changed(problem)).hint(hint).into())
}

/// The changed recipe, if it still is one of the same run.
///
/// # Errors
/// Names the keys that may not change.
pub fn same_run(before: &Resolved, mut now: Resolved, folder: &Path) -> Result<Resolved, VectorsError> {
    let changes: Vec<_> = differences(before, &now).into_iter().filter(|change| !change.may_change).collect();
    if !changes.is_empty() {
        return Err(VectorsError::Changed { path: folder.to_owned(), changes });
    }
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The table may still be the one in the run's folder: only the files show whether this is the same dataset, and
        // one that is left out would not.
        now.recipe.loader.on_corrupt = CorruptPolicy::Stop;
    }
    Ok(now)
}
