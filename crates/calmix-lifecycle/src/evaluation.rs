//! Evaluations of a run: predictions and metrics, the files that they are written to, and progress.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use calmix_core::rng::Seed;
use calmix_data::loader::SkippedSample;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::error::MetricsError;
use calmix_metrics::evaluate::{Evaluation, evaluate_unless};
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::held_out::{self, HeldOut, LabelLogits, UnseenLabel};
use calmix_metrics::metrics::Resampling;
use calmix_metrics::predictions::{EvalSet, Predictions};
use calmix_recipe::Recipe;
use calmix_run::error::RunError;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::{Event, Note};
use calmix_run::sink::{Work, WorkProgress};
use calmix_run::tensor_files::examples::ExampleRows;

use crate::error::LifecycleError;

#[derive(Debug, Clone, Default)]
pub struct EvalOutput {
    pub predictions: Vec<Predictions>,
    pub evaluations: Vec<Evaluation>,
    /// The problem of the first corrupt sample; the evaluations have the number of corrupt samples.
    pub corrupt: Option<String>,
    /// The calibrator, or the reason why none was fitted; only at the end, on rank 0.
    pub fitted: Option<Fitted>,
    /// Labels whose class occurs in no other fold, so that the head of their fold was not trained on it.
    pub unseen: Vec<UnseenLabel>,
}

#[derive(Debug, Default)]
pub struct LeftOut {
    pub samples: u64,
    /// The problem of the first sample; empty if there is none.
    pub first: String,
}

impl LeftOut {
    pub fn of(skipped: &[SkippedSample]) -> Self {
        let first = skipped.first().map(|sample| sample.problem.clone()).unwrap_or_default();
        Self { samples: skipped.len() as u64, first }
    }
}

/// Returns how intervals are resampled, and the seed; `None` if the recipe turns the bootstrap off.
pub fn resampling(recipe: &Recipe) -> Option<(Resampling, Seed)> {
    let replicates = recipe.evaluate.bootstrap as usize;
    let how = Resampling { replicates, ..Resampling::default() };
    (replicates > 0).then_some((how, Seed(recipe.train.seed)))
}

impl EvalOutput {
    /// Returns the calibrator, if one could be fitted.
    pub fn calibrator(&self) -> Option<&FittedCalibrator> {
        self.fitted.as_ref().and_then(Fitted::calibrator)
    }

    /// Returns the number of bootstrap resamples that [`measure`](Self::measure) draws.
    pub fn resamples(&self, how: Resampling) -> u64 {
        let splits = self.predictions.iter().filter(|seen| seen.split.is_evaluated()).count();
        let metrics = if self.calibrator().is_some() { 2 } else { 1 };
        (splits * metrics * how.replicates) as u64
    }

    /// Adds the metrics of the predictions. Calls `is_over` before every replicate, and returns `None` once it is true.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn measure(
        mut self,
        left_out: &[(EvalSet, LeftOut)],
        resampling: Option<(Resampling, Seed)>,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>, MetricsError> {
        for seen in self.predictions.iter().filter(|seen| seen.split.is_evaluated()) {
            let Some(mut evaluation) = evaluate_unless(seen, self.calibrator(), resampling, is_over)? else {
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

/// Computes the metrics of predictions with a calibrator, and their intervals.
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

#[derive(Debug, Default)]
pub struct FinalEvaluation {
    pub fitted: Option<Fitted>,
    /// The metrics of each split.
    pub evaluations: Vec<Evaluation>,
    /// The scores of held-out labels, if any.
    pub held_out: Option<HeldOut>,
    /// The calibrated logits of the same labels.
    pub label_logits: Option<LabelLogits>,
    /// Example samples for the report, from the test split if there is one.
    pub examples: Vec<u64>,
}

impl FinalEvaluation {
    /// Collects the evaluation of the final model of a run.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn of(output: &EvalOutput) -> Result<Self, MetricsError> {
        let evaluations = output.evaluations.iter().cloned().map(Evaluation::without_lists).collect();
        let fitted = output.fitted.clone();
        let calibrator = fitted.as_ref().and_then(Fitted::calibrator);
        let of = |split| output.predictions.iter().find(|seen| seen.split == split);
        let fitted_on =
            calibrator.and_then(|fitted| fitted.fitted_on.split()).filter(|&split| split.is_evaluated());
        let scored = match (fitted_on.and_then(of).zip(calibrator), of(EvalSet::Validation)) {
            // These labels fitted the calibrator: each is scored by a fit without it.
            (Some((seen, calibrator)), _) => {
                Some(held_out::score_with_logits_cross_fitted(seen, calibrator, &output.unseen, &|| false)?)
            }
            (None, Some(seen)) if fitted.is_some() => {
                let calibrator = calibrator.map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator);
                Some(held_out::score_with_logits(seen, calibrator)?)
            }
            (None, _) => None,
        };
        let (held_out, label_logits) = scored.unzip();
        let evaluated = output.predictions.iter().filter(|seen| seen.split.is_evaluated());
        let examples = match evaluated.max_by_key(|seen| seen.split.precedence()).filter(|_| fitted.is_some())
        {
            Some(seen) => ExampleRows::of(seen)?.all().map(|row| seen.ids[row]).collect(),
            None => Vec::new(),
        };
        Ok(Self { fitted, evaluations, held_out, label_logits, examples })
    }
}

/// Writes evaluations, and warns of samples that were left out.
#[derive(Debug)]
pub struct EvaluationLog {
    /// The number of corrupt samples of each split in the last warning.
    left_out: BTreeMap<EvalSet, u64>,
    /// The number of evaluations whose predictions are stored.
    keep_predictions: u32,
}

impl EvaluationLog {
    /// Creates the log of a run with this recipe.
    pub fn new(recipe: &Recipe) -> Self {
        Self { left_out: BTreeMap::new(), keep_predictions: recipe.evaluate.keep_predictions }
    }

    /// Writes the predictions and the metrics of an evaluation at `step`, and adds the metrics to `history`.
    pub fn write(
        &mut self,
        step: u64,
        output: &EvalOutput,
        history: &mut Vec<Evaluation>,
        events: &mut EventWriter<'_>,
    ) -> Result<(), RunError> {
        for seen in &output.predictions {
            events.predictions(seen)?;
        }
        self.note_left_out(output, events)?;
        for evaluation in &output.evaluations {
            events.event(&Event::Evaluation(Box::new(evaluation.clone())))?;
            history.push(evaluation.clone().without_lists());
        }
        events.remove_old_predictions(step, self.keep_predictions)
    }

    /// Warns how many samples an evaluation left out, whenever the number changes.
    fn note_left_out(&mut self, output: &EvalOutput, events: &mut EventWriter<'_>) -> Result<(), RunError> {
        for seen in &output.evaluations {
            let warned_of = self.left_out.insert(seen.split, seen.skipped).unwrap_or(0);
            if seen.skipped == warned_of {
                continue;
            }
            let split = seen.split.word();
            let all = seen.samples + seen.skipped;
            let first = output.corrupt.as_deref().unwrap_or_default();
            let text =
                format!("{} of {all} {split} samples are corrupt and left out ({first})", seen.skipped);
            let hint = "repair the dataset and prepare it again to evaluate all samples".to_owned();
            events.notify_sinks_only(Note { step: seen.step, text, hint })?;
        }
        Ok(())
    }
}

pub type ProgressFn<'a> = &'a dyn Fn(&WorkProgress);

pub fn ignore_progress(_: &WorkProgress) {}

/// Counts work of a run, and reports its progress.
pub struct WorkCount<'a> {
    on_progress: ProgressFn<'a>,
    progress: WorkProgress,
    start: Instant,
}

impl<'a> WorkCount<'a> {
    /// Starts work of size `total` and reports it immediately, since the first part may take long. Reports nothing if `total` is
    /// 0.
    pub fn begin(on_progress: ProgressFn<'a>, work: Work, total: u64) -> Self {
        let progress = WorkProgress { work, done: 0, total, seconds: 0.0 };
        if total > 0 {
            on_progress(&progress);
        }
        Self { on_progress, progress, start: Instant::now() }
    }

    /// Adds to the work that is done, up to the total.
    pub fn add(&mut self, done: u64) {
        let WorkProgress { done: before, total, .. } = self.progress;
        self.progress.done = (before + done).min(total);
        self.progress.seconds = self.start.elapsed().as_secs_f64();
        (self.on_progress)(&self.progress);
    }
}
