//! Evaluates the head of a finished run again, from its weights: metrics are computed, not read from its files.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_io::error::FileError;
use calmix_lifecycle::changes::same_run;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_lifecycle::evaluation::work_count::{WorkCount, ignore_progress};
use calmix_lifecycle::run_samples::{BeganWith, RunSamples};
use calmix_lifecycle::stored_model::model_of;
use calmix_lifecycle::threads::threads;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::Resolved;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::RunResult;
use calmix_run::run::{Paths, RunFile};
use calmix_run::sink::Work;
use calmix_run::tensor_files::head_files::{longest_head, read_head};

use crate::error::HeadsError;
use crate::evaluate_head::HeadEvaluator;
use crate::head_runtime::{check_head_of, decide_head};
use crate::images::make_features::vectors_to_evaluate;
use crate::read_vectors::read_vectors;
use crate::vector_table::TablePlace;

/// Evaluates the head of a finished run again, on the splits of its own dataset. Nothing is written.
///
/// The recipe is the run's, or another one that differs only in what may change, such as where the dataset is now.
///
/// # Errors
/// If the run has not finished, the recipe has changed, or the vectors or images are not those it was trained on;
/// [`HeadsError::Stopped`] if `stop` becomes true.
pub fn evaluate_head_run(
    folder: &Path,
    recipe: Option<Resolved>,
    stop: &AtomicBool,
) -> Result<EvalOutput, HeadsError> {
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
    let samples = RunSamples::open(recipe, &paths, Some(&BeganWith::of(folder)?))?;
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
fn finished(folder: &Path) -> Result<RunResult, HeadsError> {
    read::result(folder)?.ok_or_else(|| HeadsError::Unfinished { path: folder.to_owned() })
}

/// Evaluates the head of a finished run. Heads of folds are not kept, but their predictions and their calibrator are.
///
/// # Errors
/// If the files of its model are not those that the run wrote, or its vectors cannot be evaluated.
fn evaluate_again(
    folder: &Path,
    result: &RunResult,
    evaluator: HeadEvaluator<'_>,
) -> Result<EvalOutput, HeadsError> {
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
    let calibrator = calibrator.ok_or_else(|| HeadsError::Unfinished { path: folder.to_owned() })?;
    let mut count = WorkCount::begin(&ignore_progress, Work::Intervals, 0);
    evaluator.evaluate(result.step, &head, &calibrator, out_of_fold.as_ref(), &mut count)
}
