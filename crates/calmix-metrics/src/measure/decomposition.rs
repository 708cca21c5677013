//! The decomposition of the Brier score of the predicted class.

use super::bins::Assigner;
use super::{Binning, Counts, TopLabel, reliability_bins};

/// The Brier score of the event "the prediction is right", decomposed over bins.
///
/// score = reliability − resolution + uncertainty + within-bin variance − within-bin covariance, exactly.
/// Murphy's (1973) three terms are exact only when all predictions of a bin share one confidence; the other
/// two restore the identity for any bins (Stephenson, Coelho and Jolliffe, "Two extra components in the Brier
/// score decomposition", 2008).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BrierDecomposition {
    /// Mean of (confidence − correct)² over the predictions, computed directly, not from the terms.
    pub score: f64,
    /// `Σ n_b/n · (confidence_b − accuracy_b)²`: less is better calibrated.
    pub reliability: f64,
    /// `Σ n_b/n · (accuracy_b − accuracy)²`: more separates right from wrong better.
    pub resolution: f64,
    /// accuracy · (1 − accuracy), which no confidence can change.
    pub uncertainty: f64,
    /// Mean squared distance of a confidence from the mean of its bin.
    pub within_bin_variance: f64,
    /// Twice the mean product of the deviations of confidence and of correctness from the means of their bin.
    pub within_bin_covariance: f64,
}

impl BrierDecomposition {
    /// Decomposes the score of `predictions`; all terms are zero without predictions.
    pub fn new(predictions: &TopLabel, binning: Binning) -> Self {
        let n = predictions.len().max(1) as f64;
        let accuracy = predictions.accuracy();
        let bins = reliability_bins(predictions, binning);
        let assigner = Assigner::new(predictions.confidence(), binning);
        let assignment = assigner.assign(predictions.confidence(), &Counts::once(predictions.len()));

        let mut parts = Self { uncertainty: accuracy * (1.0 - accuracy), ..Self::default() };
        for bin in &bins {
            let weight = bin.count as f64 / n;
            parts.reliability += weight * bin.gap() * bin.gap();
            parts.resolution += weight * (bin.accuracy - accuracy) * (bin.accuracy - accuracy);
        }
        let rows = predictions.confidence().iter().zip(predictions.correct());
        for ((&confidence, &correct), &bin) in rows.zip(&assignment.bin) {
            let correct = f64::from(u8::from(correct));
            let from_mean = confidence - bins[bin].confidence;
            let surprise = correct - bins[bin].accuracy;
            parts.score += (confidence - correct) * (confidence - correct) / n;
            parts.within_bin_variance += from_mean * from_mean / n;
            parts.within_bin_covariance += 2.0 * from_mean * surprise / n;
        }
        parts
    }

    /// Returns the score as the sum of its terms.
    pub fn sum(&self) -> f64 {
        self.reliability - self.resolution + self.uncertainty + self.within_bin_variance
            - self.within_bin_covariance
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use crate::measure::Edges;

    #[test]
    fn every_part_is_what_a_hand_finds() {
        let predictions = TopLabel::new(vec![0.2, 0.4, 0.6, 1.0], vec![false, true, true, true]).unwrap();
        let binning = Binning::EqualWidth { bins: NonZeroU16::new(2).unwrap(), edges: Edges::LeftClosed };
        let parts = BrierDecomposition::new(&predictions, binning);
        let close = |found: f64, wanted: f64| (found - wanted).abs() < 1e-15;
        // Bins: confidence 0.3, accuracy 0.5; confidence 0.8, accuracy 1. Overall accuracy 0.75.
        assert!(close(parts.reliability, 0.5 * 0.04 + 0.5 * 0.04));
        assert!(close(parts.resolution, 0.0625));
        assert!(close(parts.uncertainty, 0.1875));
        assert!(close(parts.within_bin_variance, (2.0 * 0.01 + 2.0 * 0.04) / 4.0));
        assert!(close(parts.within_bin_covariance, 2.0 * (0.05 + 0.05) / 4.0));
        assert!(close(parts.score, (0.04 + 0.36 + 0.16) / 4.0));
        assert!(close(parts.sum(), parts.score));
    }
}
