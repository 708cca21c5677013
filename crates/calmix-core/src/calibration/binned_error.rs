//! One number from the gaps between confidence and accuracy.

use super::ReliabilityBin;

/// Expected calibration error `Σ n_b/n · |accuracy_b − confidence_b|` (Naeini, Cooper and Hauskrecht, 2015).
///
/// In [0, 1]; zero without predictions.
pub fn ece(bins: &[ReliabilityBin]) -> f64 {
    mean(bins, f64::abs)
}

/// Maximum calibration error: the largest gap of any bin that is not empty.
pub fn mce(bins: &[ReliabilityBin]) -> f64 {
    let filled = bins.iter().filter(|bin| bin.count > 0);
    filled.map(|bin| bin.gap().abs()).fold(0.0, f64::max)
}

/// Root mean square calibration error `√(Σ n_b/n · (accuracy_b − confidence_b)²)`, never below [`ece`].
pub fn rms(bins: &[ReliabilityBin]) -> f64 {
    mean(bins, |gap| gap * gap).sqrt()
}

/// The mean over predictions of a function of the gap of their bin.
fn mean(bins: &[ReliabilityBin], of: impl Fn(f64) -> f64) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.count).sum();
    let sum: f64 = bins.iter().map(|bin| bin.count as f64 * of(bin.gap())).sum();
    sum / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use crate::calibration::{Binning, Edges, TopLabel, reliability_bins};

    fn example(n: u16) -> Vec<ReliabilityBin> {
        let said = vec![0.05, 0.35, 0.62, 0.66, 0.667, 0.93, 0.95, 1.0];
        let right = vec![false, true, false, true, true, true, false, true];
        let predictions = TopLabel::new(said, right).unwrap();
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
    fn the_worst_bin_and_the_root_mean_square() {
        // Ten bins: gaps 0.05 (1), 0.65 (1), 0.0176… (3) and 0.2933… (3).
        let (bins, thirds) = (example(10), [2.0 - 1.947, 2.0 - 2.88]);
        assert!((mce(&bins) - 0.65).abs() < 1e-15);
        let squares = 0.0025 + 0.4225 + (thirds[0] * thirds[0] + thirds[1] * thirds[1]) / 3.0;
        assert!((rms(&bins) - (squares / 8.0_f64).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn nothing_is_perfectly_calibrated() {
        assert_eq!((ece(&[]), mce(&[]), rms(&[])), (0.0, 0.0, 0.0));
    }
}
