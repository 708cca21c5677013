//! Evaluates heads: their predictions on validation and test, and the metrics computed from them.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_head::network::Head;
use calmix_lifecycle::evaluation::work_count::{TellWork, WorkCount};
use calmix_lifecycle::evaluation::{EvalOutput, LeftOut, evaluate_predictions};
use calmix_lifecycle::run_samples::RunSamples;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::measure::{Binning, TopLabel, reliability_bins};
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_metrics::pseudo_labels::PseudoLabelMetrics;
use calmix_recipe::Recipe;
use calmix_run::sink::Work;

use crate::error::HeadsError;
use crate::head_vectors::HeadVectors;
use crate::vector_projection::ROWS;

/// What heads are evaluated on.
#[derive(Debug, Clone, Copy)]
pub struct HeadEvaluator<'a> {
    /// The recipe of the run.
    pub recipe: &'a Recipe,
    /// The samples of the run.
    pub samples: &'a RunSamples,
    /// Their vectors.
    pub vectors: &'a HeadVectors,
    /// Abandons an evaluation when it becomes true.
    pub stop: &'a AtomicBool,
}

impl HeadEvaluator<'_> {
    /// The predictions and metrics of a head on validation and test, and of heads of folds for the labels if there are any.
    /// Counts the resamples of its intervals.
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

    /// The quality of the labels that the live weights give to all unlabelled samples whose class is known.
    pub(crate) fn pseudo_labels(
        &self,
        live: &Head,
        tell: TellWork<'_>,
    ) -> Result<Option<PseudoLabelMetrics>, HeadsError> {
        let unlabelled = self.samples.unlabelled_ids();
        let mut count = WorkCount::begin(tell, Work::PseudoLabels, unlabelled.len() as u64);
        let mut confidence = Vec::new();
        let mut correct = Vec::new();
        // In blocks: there may be more unlabelled samples than fit into memory.
        for ids in unlabelled.chunks(ROWS) {
            let seen = self.vectors.evaluated_unlabelled(self.samples, ids)?;
            let logits = live.forward(&seen.vectors)?.logits;
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
