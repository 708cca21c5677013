//! The result of an evaluation, and the metrics that are computed from its predictions.

pub mod evaluation_log;
pub mod final_evaluation;
pub mod work_count;

use std::sync::atomic::{AtomicBool, Ordering};

use calmix_core::rng::Seed;
use calmix_data::loader::SkippedSample;
use calmix_metrics::error::MetricsError;
use calmix_metrics::evaluate::{Evaluation, evaluate_unless};
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::held_out::UnseenLabel;
use calmix_metrics::metrics::Resampling;
use calmix_metrics::predictions::{EvalSet, Predictions};
use calmix_recipe::Recipe;

use crate::error::LifecycleError;
use crate::evaluation::work_count::WorkCount;

/// The result of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct EvalOutput {
    /// The predictions.
    pub predictions: Vec<Predictions>,
    /// Their metrics, on validation and test.
    pub evaluations: Vec<Evaluation>,
    /// A corrupt sample that was left out, and what is wrong with it; the evaluations have their numbers.
    pub corrupt: Option<String>,
    /// The calibrator, or why there is none; only at the end, on rank 0.
    pub fitted: Option<Fitted>,
    /// The labels of a head whose class no head of a fold could know.
    pub unseen: Vec<UnseenLabel>,
}

/// Corrupt samples that were left out.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// The number of these samples.
    pub samples: u64,
    /// What is wrong with the first one; empty if there is none.
    pub first: String,
}

impl LeftOut {
    /// Counts the samples.
    pub fn of(skipped: &[SkippedSample]) -> Self {
        let first = skipped.first().map(|sample| sample.problem.clone()).unwrap_or_default();
        Self { samples: skipped.len() as u64, first }
    }
}

/// How intervals are computed; `None` if the recipe wants none.
pub fn resampling(recipe: &Recipe) -> Option<(Resampling, Seed)> {
    let replicates = recipe.evaluate.bootstrap as usize;
    let how = Resampling { replicates, ..Resampling::default() };
    (replicates > 0).then_some((how, Seed(recipe.train.seed)))
}

impl EvalOutput {
    /// The calibrator, if one could be fitted.
    pub fn map(&self) -> Option<&FittedCalibrator> {
        self.fitted.as_ref().and_then(Fitted::map)
    }

    /// The bootstrap resamples that [`measure`](Self::measure) draws.
    pub fn resamples(&self, how: Resampling) -> u64 {
        let splits = self.predictions.iter().filter(|seen| seen.split != EvalSet::Labelled).count();
        let metrics = if self.map().is_some() { 2 } else { 1 };
        (splits * metrics * how.replicates) as u64
    }

    /// Adds the metrics of the predictions; `None` if `is_over`, which is called before every replicate, returns true.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn measure(
        mut self,
        left_out: &[(EvalSet, LeftOut)],
        resampling: Option<(Resampling, Seed)>,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>, MetricsError> {
        for seen in self.predictions.iter().filter(|seen| seen.split != EvalSet::Labelled) {
            let Some(mut evaluation) = evaluate_unless(seen, self.map(), resampling, is_over)? else {
                return Ok(None);
            };
            let corrupt = left_out.iter().find(|(split, _)| *split == seen.split);
            evaluation.skipped = corrupt.map_or(0, |(_, corrupt)| corrupt.samples);
            self.evaluations.push(evaluation);
        }
        let first = left_out.iter().map(|(_, corrupt)| &corrupt.first).find(|first| !first.is_empty());
        self.corrupt = first.cloned();
        Ok(Some(self))
    }
}

/// Computes the metrics of predictions that were made with a calibrator, with their intervals.
///
/// # Errors
/// [`LifecycleError::Stopped`] if `stop` becomes true.
pub fn evaluate_predictions(
    output: EvalOutput,
    left_out: &[(EvalSet, LeftOut)],
    recipe: &Recipe,
    stop: &AtomicBool,
    count: &mut WorkCount<'_>,
) -> Result<EvalOutput, LifecycleError> {
    let mut is_over = || {
        count.add(1);
        stop.load(Ordering::Relaxed)
    };
    let measured = output.measure(left_out, resampling(recipe), &mut is_over)?;
    measured.ok_or(LifecycleError::Stopped)
}
