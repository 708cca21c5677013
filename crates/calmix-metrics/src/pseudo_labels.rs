//! The quality of pseudo-labels, if the true classes of unlabelled samples are known, as in benchmarks.

mod sums;

use crate::measure::{ReliabilityBin, confidence_gap, ece, mean_confidence};
use serde::{Deserialize, Serialize};

pub use sums::PseudoSums;

/// The error and calibration of pseudo-labels: of the unlabelled samples whose class the dataset has, without the samples
/// that are also trained on with their label. Every sample has the same weight, whatever its weight in the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelMetrics {
    /// The number of pseudo-labels that were evaluated.
    pub samples: u64,
    /// The share of them that is wrong.
    pub error: f64,
    /// Their mean confidence.
    pub mean_confidence: f64,
    /// Mean confidence − accuracy: positive if the pseudo-labels are over-confident.
    pub confidence_gap: f64,
    /// Their expected calibration error, 15 bins of equal width.
    pub ece_15: f64,
}

/// The share of wrong pseudo-labels among the samples of the mixup; `None` if there is nothing to evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpurityOf {
    /// Among UE, the easy unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub easy: Option<f64>,
    /// Among UH, the hard unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<f64>,
    /// Among the mixtures with a pseudo-label that can be evaluated: the share with at least one wrong pseudo-label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixtures: Option<f64>,
}

impl PseudoLabelMetrics {
    /// Computes the metrics from 15 bins of equal width; `None` if all are empty.
    pub fn of(bins: &[ReliabilityBin]) -> Option<Self> {
        let samples = bins.iter().map(|bin| bin.count as u64).sum();
        let mean_confidence = mean_confidence(bins);
        let confidence_gap = confidence_gap(bins);
        let right: f64 = bins.iter().map(|bin| bin.count as f64 * bin.accuracy).sum();
        (samples > 0).then(|| Self {
            samples,
            // A count of right ones, which the mean of each bin has rounded.
            error: (samples as f64 - right.round()) / samples as f64,
            mean_confidence,
            confidence_gap,
            ece_15: ece(bins),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::BinTotals;

    use super::*;

    #[test]
    fn metrics_of_a_few_labels() {
        assert_eq!(PseudoLabelMetrics::of(&BinTotals::default().bins()), None);
        let mut totals = BinTotals::default();
        for (confidence, correct) in [(0.5, true), (0.75, false), (0.75, false), (1.0, true)] {
            totals.add(confidence, correct);
        }
        let metrics = PseudoLabelMetrics::of(&totals.bins()).unwrap();
        assert_eq!((metrics.samples, metrics.error, metrics.mean_confidence), (4, 0.5, 0.75));
        assert_eq!((metrics.confidence_gap, metrics.ece_15), (0.25, (0.5 + 1.5) / 4.0));
    }
}
