//! Prediction sets by one threshold, or by a threshold per class.

use super::{ClassConditional, Conformal};

/// A calibrated rule for prediction sets. Every set contains the likeliest class.
#[derive(Debug, Clone, PartialEq)]
pub enum PredictionSets {
    /// One threshold: the coverage is an average over all samples.
    Marginal(Conformal),
    /// A threshold per class: the coverage holds for each class.
    ByClass(ClassConditional),
}

impl PredictionSets {
    /// Returns the prediction set of one sample, the likeliest class first; `sample` as in [`Conformal::set`].
    pub fn set(&self, probabilities: &[f32], sample: u64) -> Vec<u32> {
        match self {
            Self::Marginal(rule) => rule.set(probabilities, sample),
            Self::ByClass(rule) => rule.set(probabilities),
        }
    }
}
