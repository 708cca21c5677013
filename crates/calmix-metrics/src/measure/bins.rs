//! Reliability bins: predictions of similar confidence, how often they were right, and calibration errors from them.

mod assignment;
mod binned;
mod binning;

use serde::{Deserialize, Serialize};

pub(super) use assignment::EqualWidth;
pub(super) use binned::BinSums;
pub use binned::{BinTotals, Binned, reliability_bins};
pub(super) use binning::FIFTEEN;
pub use binning::{Binning, Edges};

/// Predictions of similar confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// The lower end: the edge, or the smallest confidence in a bin of equal mass.
    pub lower: f64,
    /// The upper end: the edge, or the largest confidence in a bin of equal mass.
    pub upper: f64,
    /// The number of predictions in the bin.
    pub count: usize,
    /// The mean confidence of these predictions; zero in an empty bin.
    pub confidence: f64,
    /// The share of these predictions that was right; zero in an empty bin.
    pub accuracy: f64,
}

impl ReliabilityBin {
    /// Returns accuracy − confidence: positive if the bin is under-confident.
    pub fn gap(&self) -> f64 {
        self.accuracy - self.confidence
    }
}

/// Computes the expected calibration error `Σ n_b/n · |accuracy_b − confidence_b|` (Naeini, Cooper and Hauskrecht, 2015).
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

/// Averages `of`, a function of the gap of a bin, over the predictions of all bins.
fn mean(bins: &[ReliabilityBin], of: impl Fn(f64) -> f64) -> f64 {
    mean_of_bins(bins, |bin| of(bin.gap()))
}

fn mean_of_bins(bins: &[ReliabilityBin], of: impl Fn(&ReliabilityBin) -> f64) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.count).sum();
    let sum: f64 = bins.iter().map(|bin| bin.count as f64 * of(bin)).sum();
    sum / total.max(1) as f64
}

/// Computes the squared calibration error with its plug-in bias removed, `Σ n_b/n · (gap_b² − a_b(1 − a_b)/(n_b − 1))`.
///
/// The accuracy of a small bin scatters around its true value, and the square of a gap counts that scatter as error: even a
/// perfectly calibrated classifier measures above zero, the more so the fewer predictions a bin has. Subtracting the estimated
/// variance leaves an unbiased estimate (Kumar, Liang and Ma, "Verified uncertainty calibration", 2019), which can be negative.
/// It still depends on the bins: they hide what cancels within them.
///
/// The variance of a bin with one prediction cannot be estimated: it counts as zero, as in the authors' code.
pub fn debiased_squared_error(bins: &[ReliabilityBin]) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.count).sum();
    let sum: f64 = bins
        .iter()
        .filter(|bin| bin.count > 1)
        .map(|bin| {
            let n = bin.count as f64;
            let scatter = bin.accuracy * (1.0 - bin.accuracy) / (n - 1.0);
            n * (bin.gap() * bin.gap() - scatter)
        })
        .sum();
    sum / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use calmix_core::rng::{Domain, Seed};

    use super::*;
    use crate::measure::TopLabel;

    fn example(n: u16) -> Vec<ReliabilityBin> {
        let confidence = vec![0.05, 0.35, 0.62, 0.66, 0.667, 0.93, 0.95, 1.0];
        let right = vec![false, true, false, true, true, true, false, true];
        let predictions = TopLabel::new(confidence, right).unwrap();
        let bins = NonZeroU16::new(n).unwrap();
        let edges = Edges::LeftClosed;
        reliability_bins(&predictions, Binning::EqualWidth { bins, edges })
    }

    #[test]
    fn ece_of_a_worked_example() {
        assert!((ece(&example(10)) - 0.204_125).abs() < 1e-15);
        assert!((ece(&example(15)) - 0.291_625).abs() < 1e-15);
    }

    #[test]
    fn confidence_gap_has_a_sign() {
        // Confidences add up to 5.227, and five of eight are right.
        let bins = example(10);
        assert!((mean_confidence(&bins) - 5.227 / 8.0).abs() < 1e-15);
        assert!((confidence_gap(&bins) - 0.227 / 8.0).abs() < 1e-15);
        assert!(confidence_gap(&bins) < ece(&bins));
    }

    #[test]
    fn the_bias_of_a_calibrated_classifier_is_removed() {
        let mut plug_in = 0.0;
        let mut debiased = 0.0;
        let repetitions = 400;
        for repetition in 0..repetitions {
            let mut stream = Seed(3).stream(Domain::Bootstrap, 0, repetition);
            // Whole bins of one confidence, so that calibration within bins is exact.
            let confidence: Vec<f64> = (0..150).map(|i| (f64::from(i % 15) + 0.5) / 15.0).collect();
            let correct = confidence.iter().map(|&c| stream.uniform() < c).collect();
            let bins = reliability_bins(&TopLabel::new(confidence, correct).unwrap(), Binning::default());
            let squares: f64 = bins.iter().map(|bin| bin.count as f64 * bin.gap() * bin.gap()).sum();
            plug_in += squares / 150.0 / repetitions as f64;
            debiased += debiased_squared_error(&bins) / repetitions as f64;
        }
        // Bins of ten: the plug-in expectation is the mean of c(1 − c)/10 = 0.01663. One repetition of the
        // mean of 15 squared gaps scatters by about 0.006, so the mean of 400 by 0.0003; three of those.
        assert!((plug_in - 0.016_63).abs() < 0.001, "{plug_in}");
        assert!(debiased.abs() < 0.001, "{debiased}");
    }

    #[test]
    fn debiased_error_can_be_negative() {
        let bin = ReliabilityBin { lower: 0.0, upper: 1.0, count: 4, confidence: 0.5, accuracy: 0.5 };
        assert!((debiased_squared_error(&[bin]) + 0.25 / 3.0).abs() < 1e-16);
        assert_eq!(debiased_squared_error(&[ReliabilityBin { count: 1, ..bin }]), 0.0);
        assert_eq!(debiased_squared_error(&[]), 0.0);
    }
}
