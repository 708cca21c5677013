//! Evaluates heads: their predictions on validation and test, and the metrics computed from them.

use calmix_core::matrix::Matrix;
use calmix_head::network::Head;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::measure::{Binning, TopLabel, reliability_bins};
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_metrics::pseudo_labels::PseudoLabelMetrics;
use calmix_recipe::Recipe;

use crate::trainer::data::head_vectors::HeadVectors;
use crate::trainer::data::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::eval::evaluate::{EvalOutput, LeftOut, evaluate_predictions};
use crate::trainer::ranks::eval_stop::EvalStop;

/// What heads are evaluated on.
#[derive(Clone, Copy)]
pub(crate) struct HeadEvaluator<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) data: &'a TrainData,
    pub(crate) vectors: &'a HeadVectors,
    pub(crate) stop: EvalStop<'a>,
}

impl HeadEvaluator<'_> {
    /// The predictions and metrics of a head on validation and test, and of heads of folds for the labels if there are any.
    pub(crate) fn evaluate(
        &self,
        head: &Head,
        fitted: &Fitted,
        out_of_fold: Option<&Predictions>,
    ) -> Result<EvalOutput, TrainError> {
        let mut predictions = Vec::new();
        let mut left_out = Vec::new();
        for split in [EvalSet::Validation, EvalSet::Test] {
            let seen = self.vectors.of_split(self.data, split, self.recipe.loader.corrupt())?;
            left_out.push((split, LeftOut::of(&seen.skipped)));
            if !seen.ids.is_empty() {
                predictions.push(Predictions {
                    step: self.stop.step,
                    split,
                    model: EvalModel::Ema,
                    classes: self.data.classes.clone(),
                    ids: seen.ids,
                    labels: seen.labels,
                    logits: head.forward(&seen.vectors)?.logits,
                });
            }
        }
        predictions.extend(out_of_fold.cloned());
        let output = EvalOutput { predictions, fitted: Some(fitted.clone()), ..EvalOutput::default() };
        evaluate_predictions(output, &left_out, self.recipe, self.stop)
    }

    /// The quality of the labels that the live weights give to all unlabelled samples whose class is known.
    pub(crate) fn pseudo_labels(&self, live: &Head) -> Result<Option<PseudoLabelMetrics>, TrainError> {
        let seen = self.vectors.evaluated_unlabelled(self.data)?;
        let logits = live.forward(&seen.vectors)?.logits;
        let logits = Matrix::new(&logits, seen.labels.len(), self.data.classes.len())?;
        let top = TopLabel::from_logits(logits, &seen.labels, 1.0)?;
        Ok(PseudoLabelMetrics::of(&reliability_bins(&top, Binning::default())))
    }
}
