//! The evaluation of heads: predictions on validation and test, and their metrics, at the end of a run or again from its weights.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_head::network::Head;
use calmix_io::error::FileError;
use calmix_lifecycle::changes::{RunInputs, changed_recipe};
use calmix_lifecycle::evaluation::{
    EvalOutput, LeftOut, ProgressFn, WorkCount, evaluate_predictions, ignore_progress,
};
use calmix_lifecycle::request::threads;
use calmix_lifecycle::run_files::read_model;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::measure::{Binning, TopLabel, reliability_bins};
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_metrics::pseudo_labels::PseudoLabelMetrics;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::RunResult;
use calmix_run::run::{Paths, RunFile};
use calmix_run::sink::Work;
use calmix_run::tensor_files::head_files::{max_head_bytes, read_head};

use crate::error::HeadsError;
use crate::head_settings::{check_head_of, decide_head};
use crate::head_vectors::HeadVectors;
use crate::images::make_features::vectors_to_evaluate;
use crate::read_vectors::read_vectors;
use crate::vector_table::{BLOCK_ROWS, TablePlace};

#[derive(Debug, Clone, Copy)]
pub struct HeadEvaluator<'a> {
    pub recipe: &'a Recipe,
    pub samples: &'a RunSamples,
    pub vectors: &'a HeadVectors,
    pub stop: &'a AtomicBool,
}

impl HeadEvaluator<'_> {
    /// Evaluates a head on validation and test, and its out-of-fold predictions if there are any. `count` counts the resamples of
    /// the intervals.
    ///
    /// # Errors
    /// If more samples have no vector than the recipe allows; [`HeadsError::Stopped`] if the run has to stop.
    pub fn evaluate(
        &self,
        step: u64,
        head: &Head,
        fitted: &Fitted,
        out_of_fold: Option<&Predictions>,
        count: &mut WorkCount<'_>,
    ) -> Result<EvalOutput, HeadsError> {
        let mut predictions = Vec::new();
        let mut left_out = Vec::new();
        for split in [EvalSet::Validation, EvalSet::Test] {
            let seen = self.vectors.of_split(self.samples, split, self.recipe.loader.corrupt())?;
            left_out.push((split, LeftOut::of(&seen.skipped)));
            if !seen.ids.is_empty() {
                let groups = self.samples.dataset.group_numbers(&seen.ids)?;
                predictions.push(Predictions {
                    step,
                    split,
                    model: EvalModel::Ema,
                    classes: self.samples.classes.clone(),
                    ids: seen.ids,
                    labels: seen.labels,
                    logits: head.forward(&seen.vectors)?.logits,
                    groups,
                });
            }
        }
        predictions.extend(out_of_fold.cloned());
        let output = EvalOutput { predictions, fitted: Some(fitted.clone()), ..EvalOutput::default() };
        Ok(evaluate_predictions(output, &left_out, self.recipe, self.stop, count)?)
    }

    /// Evaluates a head's pseudo-labels of all unlabelled samples whose class is known.
    pub(crate) fn pseudo_labels(
        &self,
        head: &Head,
        on_progress: ProgressFn<'_>,
    ) -> Result<Option<PseudoLabelMetrics>, HeadsError> {
        let unlabelled = self.samples.unlabelled_ids();
        let mut count = WorkCount::begin(on_progress, Work::PseudoLabels, unlabelled.len() as u64);
        let mut confidence = Vec::new();
        let mut correct = Vec::new();
        // In blocks: there may be more unlabelled samples than fit into memory.
        for ids in unlabelled.chunks(BLOCK_ROWS) {
            let seen = self.vectors.evaluated_unlabelled(self.samples, ids)?;
            let logits = head.forward(&seen.vectors)?.logits;
            let logits = Matrix::new(&logits, seen.labels.len(), self.samples.classes.len())?;
            let top = TopLabel::from_logits(logits, &seen.labels, 1.0)?;
            confidence.extend_from_slice(top.confidence());
            correct.extend_from_slice(top.correct());
            count.add(ids.len() as u64);
        }
        let top = TopLabel::new(confidence, correct)?;
        Ok(PseudoLabelMetrics::of(&reliability_bins(&top, Binning::default())))
    }
}

/// Evaluates the head of a finished run again, on the splits of its own dataset. Nothing is written.
///
/// The recipe is the run's, or another one that differs only in keys that may change, such as the path of the dataset.
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
        resolved = changed_recipe(&resolved, changed, folder)?;
    }
    check_head_of(folder, &resolved.recipe)?;
    let result = finished(folder)?;
    let threads = threads(resolved.recipe.train.threads, 1);
    decide_head(&mut resolved, threads)?;
    let recipe = &resolved.recipe;
    let paths = Paths::new(folder);
    let samples = RunSamples::open(recipe, &paths, Some(&RunInputs::of(folder)?))?;
    let vectors = if recipe.has_vectors() {
        let needed = samples.needed_to_evaluate();
        read_vectors(recipe, &samples.dataset, &needed, &paths, TablePlace::MEMORY, stop)?
    } else {
        vectors_to_evaluate(recipe, &samples, &paths, stop)?
    };
    let evaluator = HeadEvaluator { recipe, samples: &samples, vectors: &vectors, stop };
    evaluate_again(folder, &result, evaluator)
}

fn finished(folder: &Path) -> Result<RunResult, HeadsError> {
    read::result(folder)?.ok_or_else(|| HeadsError::Unfinished { path: folder.to_owned() })
}

/// Evaluates the head of a finished run. The heads of folds are not stored, but their predictions and their calibrator are.
fn evaluate_again(
    folder: &Path,
    result: &RunResult,
    evaluator: HeadEvaluator<'_>,
) -> Result<EvalOutput, HeadsError> {
    let HeadEvaluator { recipe, samples, vectors, .. } = evaluator;
    let mut info = vectors.info.clone();
    // Vectors do not say whether the head that was kept is one on neighbours.
    info.neighbours = read::model_info(folder)?.head.map_or(0, |head| head.neighbours);
    let shape = info.shape(samples.classes.len());
    let head = Some(info);
    let (model, info) = read_model(folder, max_head_bytes(shape), recipe, samples, head)?;
    let path = Paths::new(folder).file(RunFile::Model)?;
    let head = read_head(&model, shape).map_err(|problem| FileError::new(path, problem))?;
    let evaluated = result.evaluations.iter().find(|seen| seen.split == EvalSet::OutOfFold);
    let out_of_fold = evaluated.map(|seen| read::predictions_of(folder, seen)).transpose()?.flatten();
    let calibrator = info.calibration.map(|map| Fitted::Calibrator(Box::new(map)));
    let calibrator = calibrator.or_else(|| result.uncalibrated.map(Fitted::Uncalibrated));
    let calibrator = calibrator.ok_or_else(|| HeadsError::Unfinished { path: folder.to_owned() })?;
    let mut count = WorkCount::begin(&ignore_progress, Work::Intervals, 0);
    evaluator.evaluate(result.step, &head, &calibrator, out_of_fold.as_ref(), &mut count)
}
