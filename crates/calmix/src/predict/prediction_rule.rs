//! From logits to a prediction: the calibrator and the guarantees of a model, without its network.

use calmix_core::softmax::argmax;
use calmix_head::parallel;
use calmix_metrics::abstention::log_odds;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::error::MetricsError;
use calmix_metrics::held_out::{LabelLogits, adapt_logits};
use calmix_run::model_info::ModelInfo;

use super::guarantee::Guarantee;
use super::other_mix::OtherMix;
use crate::model::options::ModelOptions;

/// The number of rows that one thread processes at a time.
const ROWS_PER_TASK: usize = 256;

/// The prediction of a model for an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The most probable class, as an index into the classes of the model.
    pub label: usize,
    /// The calibrated probability of `label`, between 0 and 1.
    pub confidence: f32,
    /// The probability of `label` minus that of the second most probable class.
    pub margin: f32,
    /// The calibrated probabilities of all classes, in the order of the model's classes.
    pub probabilities: Vec<f32>,
    /// The prediction set, which contains the true class with the guaranteed probability, most probable class first; `None`
    /// if no labels were held out.
    pub set: Option<Vec<u32>>,
    /// Whether the confidence before calibration is below the threshold for the requested precision; `None` if no labels
    /// were held out.
    pub abstain: Option<bool>,
}

/// The rule that turns the logits of a model into predictions.
#[derive(Debug, Clone)]
pub struct PredictionRule {
    info: ModelInfo,
    calibrator: Calibrator,
    guarantee: Guarantee,
    /// The mix of classes that predictions are adapted to, if any.
    mix: Option<OtherMix>,
}

impl PredictionRule {
    /// Creates the rule of the model that `model.json` describes.
    ///
    /// # Errors
    /// If its held-out labels do not fit the options.
    pub fn new(info: ModelInfo, options: &ModelOptions) -> Result<Self, MetricsError> {
        let fitted = info.calibration.as_ref();
        let calibrator = fitted.map_or(Calibrator::IDENTITY, |fitted| fitted.calibrator.clone());
        let guarantee = Guarantee::new(info.held_out.as_ref(), &info.classes, options)?;
        Ok(Self { info, calibrator, guarantee, mix: None })
    }

    /// Returns the rule for another mix of classes: probabilities, prediction sets and abstention are adapted.
    ///
    /// # Errors
    /// If the held-out labels do not fit the mix, or the sets of the options are APS.
    pub fn for_mix(
        &self,
        mix: OtherMix,
        labels: &LabelLogits,
        options: &ModelOptions,
    ) -> Result<Self, MetricsError> {
        let guarantee = Guarantee::for_mix(labels, &mix.weights, &self.info.classes, options)?;
        Ok(Self { guarantee, mix: Some(mix), ..self.clone() })
    }

    /// Returns the mix of classes that predictions are adapted to, if any.
    pub fn mix(&self) -> Option<&OtherMix> {
        self.mix.as_ref()
    }

    /// Computes the calibrated probabilities of rows of logits, before they are adapted to another mix.
    ///
    /// # Errors
    /// If the calibrator is for another number of classes.
    pub fn calibrated(&self, logits: &[f32]) -> Result<Vec<f32>, MetricsError> {
        let classes = self.info.classes.len().max(1);
        let mut probabilities = vec![0.0; logits.len()];
        for (row, out) in logits.chunks_exact(classes).zip(probabilities.chunks_exact_mut(classes)) {
            self.calibrator.probabilities_into(row, out)?;
        }
        Ok(probabilities)
    }

    /// Returns the description of the model in `model.json`.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Returns the guarantees for prediction sets and answers.
    pub fn guarantee(&self) -> &Guarantee {
        &self.guarantee
    }

    /// Turns rows of logits into predictions, on several threads. The result does not depend on their number.
    pub fn predictions(&self, logits: &[f32], threads: usize) -> Result<Vec<Prediction>, MetricsError> {
        let classes = self.info.classes.len().max(1);
        let tasks: Vec<&[f32]> = logits.chunks(ROWS_PER_TASK * classes).collect();
        let predict = |task: &[f32]| task.chunks_exact(classes).map(|row| self.prediction(row)).collect();
        let predicted: Vec<Result<Vec<Prediction>, MetricsError>> =
            parallel::run(tasks.len(), threads, |n| predict(tasks[n]));
        let mut predictions = Vec::with_capacity(logits.len() / classes);
        for task in predicted {
            predictions.extend(task?);
        }
        Ok(predictions)
    }

    /// Turns the logits of an input into a prediction.
    ///
    /// # Errors
    /// If the calibrator is for another number of classes.
    pub fn prediction(&self, logits: &[f32]) -> Result<Prediction, MetricsError> {
        let mut probabilities = vec![0.0; logits.len()];
        let (label, score) = match &self.mix {
            None => {
                let label = self.calibrator.probabilities_into(logits, &mut probabilities)?;
                (label, self.calibrator.answer_score(logits)?)
            }
            Some(mix) => {
                let mut adapted = vec![0.0; logits.len()];
                self.calibrator.apply_to_row(logits, &mut adapted)?;
                adapt_logits(&mut adapted, &mix.weights);
                Temperature::IDENTITY.probabilities_into(&adapted, &mut probabilities);
                (argmax(&adapted), log_odds(&adapted))
            }
        };
        let confidence = probabilities.get(label).copied().unwrap_or_default();
        let others = probabilities.iter().enumerate().filter(|(class, _)| *class != label);
        let second = others.map(|(_, &p)| p).fold(0.0, f32::max);
        let set = self.guarantee.sets().map(|rule| rule.set(&probabilities, input_number(logits)));
        let abstain = self.guarantee.abstains(score);
        Ok(Prediction { label, confidence, margin: confidence - second, probabilities, set, abstain })
    }
}

/// Returns a hash of the logits (FNV-1a) that seeds randomised prediction sets, so that the same input always has the same set.
fn input_number(logits: &[f32]) -> u64 {
    let add = |hash: u64, logit: &f32| (hash ^ u64::from(logit.to_bits())).wrapping_mul(0x0100_0000_01b3);
    logits.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another hash would give the same input another randomised set.
    #[test]
    fn hash_of_logits_does_not_change() {
        assert_eq!(input_number(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(input_number(&[1.0, -2.5]), 0x2833_2701_0ecb_6fed);
        assert_eq!(input_number(&[-2.5, 1.0]), 0xc831_cf18_494b_6fed);
    }
}
