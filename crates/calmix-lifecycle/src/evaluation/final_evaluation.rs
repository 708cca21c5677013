//! The result of the last evaluation of a model: its calibrator and metrics, its held-out labels and its examples.

use calmix_metrics::calibrator::any_calibrator::Calibrator;
use calmix_metrics::error::MetricsError;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::held_out::{self, HeldOut};
use calmix_metrics::predictions::EvalSet;
use calmix_run::tensor_files::examples::ExampleRows;

use crate::evaluation::EvalOutput;

/// The last evaluation of a model.
#[derive(Debug, Default)]
pub struct FinalEvaluation {
    /// The calibrator, or why there is none.
    pub fitted: Option<Fitted>,
    /// The metrics, split by split.
    pub evaluations: Vec<Evaluation>,
    /// The scores of held-out labels, if any.
    pub held_out: Option<HeldOut>,
    /// The example samples, on test if any.
    pub examples: Vec<u64>,
}

impl FinalEvaluation {
    /// The evaluation of the model that a run results in.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn of(output: &EvalOutput) -> Result<Self, MetricsError> {
        let evaluations = output.evaluations.iter().cloned().map(Evaluation::without_lists).collect();
        let fitted = output.fitted.clone();
        let map = fitted.as_ref().and_then(Fitted::map);
        let of = |split| output.predictions.iter().find(|seen| seen.split == split);
        let fitted_on = map.and_then(|map| map.fitted_on.split()).filter(|&split| split != EvalSet::Labelled);
        let held_out = match (fitted_on.and_then(of).zip(map), of(EvalSet::Validation)) {
            // These labels fitted the calibrator: each is scored by a fit without it.
            (Some((seen, map)), _) => Some(held_out::cross_fitted(seen, map, &output.unseen)?),
            (None, Some(seen)) if fitted.is_some() => {
                let calibrator = map.map_or(&Calibrator::IDENTITY, |map| &map.calibrator);
                Some(held_out::of_others(seen, calibrator)?)
            }
            (None, _) => None,
        };
        let evaluated = output.predictions.iter().filter(|seen| seen.split != EvalSet::Labelled);
        let examples = match evaluated.max_by_key(|seen| seen.split.precedence()).filter(|_| fitted.is_some())
        {
            Some(seen) => ExampleRows::of(seen)?.all().map(|row| seen.ids[row]).collect(),
            None => Vec::new(),
        };
        Ok(Self { fitted, evaluations, held_out, examples })
    }
}
