//! One number from bins: the gaps between confidence and accuracy, with or without their sign.

use crate::measure::ReliabilityBin;

/// Expected calibration error `Σ n_b/n · |accuracy_b − confidence_b|` (Naeini, Cooper and Hauskrecht, 2015).
///
/// In [0, 1]; zero without predictions.
pub fn ece(bins: &[ReliabilityBin]) -> f64 {
    mean(bins, f64::abs)
}

/// Computes the mean confidence of all predictions; zero without predictions.
pub fn mean_confidence(bins: &[ReliabilityBin]) -> f64 {
    mean_of_bins(bins, |bin| bin.confidence)
}

/// Computes mean confidence − accuracy: positive if predictions are over-confident on the whole, negative if they are
/// under-confident. Its absolute value is never above [`ece`], in which gaps of both signs add up.
pub fn confidence_gap(bins: &[ReliabilityBin]) -> f64 {
    mean(bins, |gap| -gap)
}

/// The mean over predictions of a function of the gap of their bin.
fn mean(bins: &[ReliabilityBin], of: impl Fn(f64) -> f64) -> f64 {
    mean_of_bins(bins, |bin| of(bin.gap()))
}

fn mean_of_bins(bins: &[ReliabilityBin], of: impl Fn(&ReliabilityBin) -> f64) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.count).sum();
    let sum: f64 = bins.iter().map(|bin| bin.count as f64 * of(bin)).sum();
    sum / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use crate::measure::{Binning, Edges, TopLabel, reliability_bins};

    fn example(n: u16) -> Vec<ReliabilityBin> {
        let confidence = vec![0.05, 0.35, 0.62, 0.66, 0.667, 0.93, 0.95, 1.0];
        let right = vec![false, true, false, true, true, true, false, true];
        let predictions = TopLabel::new(confidence, right).unwrap();
        let bins = NonZeroU16::new(n).unwrap();
        let edges = Edges::LeftClosed;
        reliability_bins(&predictions, Binning::EqualWidth { bins, edges })
    }

    #[test]
    fn the_worked_example_comes_out() {
        assert!((ece(&example(10)) - 0.204_125).abs() < 1e-15);
        assert!((ece(&example(15)) - 0.291_625).abs() < 1e-15);
    }

    #[test]
    fn the_sign_says_over_or_under_confident() {
        // Confidences add up to 5.227, and five of eight are right.
        let bins = example(10);
        assert!((mean_confidence(&bins) - 5.227 / 8.0).abs() < 1e-15);
        assert!((confidence_gap(&bins) - 0.227 / 8.0).abs() < 1e-15);
        assert!(confidence_gap(&bins) < ece(&bins));
    }

    #[test]
    fn nothing_is_perfectly_calibrated() {
        assert_eq!(ece(&[]), 0.0);
        assert_eq!((mean_confidence(&[]), confidence_gap(&[])), (0.0, 0.0));
    }
}
