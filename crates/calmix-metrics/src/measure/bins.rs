//! Reliability bins: predictions of similar confidence, and how often they were right.

mod assignment;
mod bin_totals;
mod binned;
mod binned_error;
mod binning;
mod debiased;

use super::{Counts, TopLabel};

pub(super) use assignment::{Assigner, EqualWidth};
pub use bin_totals::BinTotals;
pub(super) use binned::BinSums;
pub use binned::Binned;
pub use binned_error::{confidence_gap, ece, mean_confidence};
pub use binning::{Binning, Edges, ReliabilityBin};
pub use debiased::debiased_squared_error;

/// Divides the predictions into bins, in the order of confidence.
///
/// Bins of equal width include the empty ones.
pub fn reliability_bins(predictions: &TopLabel, binning: Binning) -> Vec<ReliabilityBin> {
    Binned::new(predictions, binning).bins(&Counts::once(predictions.len()))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    fn bins(n: u16) -> NonZeroU16 {
        NonZeroU16::new(n).unwrap()
    }

    fn all_right(confidence: &[f64], binning: Binning) -> Vec<ReliabilityBin> {
        let predictions = TopLabel::new(confidence.to_vec(), vec![true; confidence.len()]).unwrap();
        reliability_bins(&predictions, binning)
    }

    fn counts(confidence: &[f64], binning: Binning) -> Vec<usize> {
        all_right(confidence, binning).iter().map(|bin| bin.count).collect()
    }

    #[test]
    fn edges_belong_where_they_say() {
        let confidence = [0.0, 0.25, 0.5, 0.75, 1.0];
        let count = |edges| counts(&confidence, Binning::EqualWidth { bins: bins(4), edges });
        assert_eq!(count(Edges::LeftClosed), [1, 1, 1, 2]);
        assert_eq!(count(Edges::RightClosed), [2, 1, 1, 1]);
        assert_eq!(count(Edges::Torchmetrics), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn the_edges_are_the_nearest_numbers_to_the_fractions() {
        for n in [3, 7, 10, 15, 20, 49, 100] {
            let confidence: Vec<f64> = (0..n).map(|i| f64::from(i) / f64::from(n)).collect();
            let edges = Edges::LeftClosed;
            let binning = Binning::EqualWidth { bins: bins(n), edges };
            assert_eq!(counts(&confidence, binning), vec![1; usize::from(n)]);
        }
    }

    #[test]
    fn bins_of_equal_mass_keep_ties_together() {
        let count = |confidence: &[f64], n| counts(confidence, Binning::EqualMass { bins: bins(n) });
        assert_eq!(count(&[0.6, 0.1, 0.5, 0.2, 0.4, 0.3], 3), [2, 2, 2]);
        assert_eq!(count(&[0.1, 0.2, 0.3, 0.4, 0.5], 2), [3, 2]);
        // Ranks 1 to 4 share the middle 2.5, of the first half.
        assert_eq!(count(&[0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.4], 2), [5, 2]);
        assert_eq!(count(&[0.9; 5], 4), [5]);
        assert_eq!(count(&[0.3, 0.7], 15), [1, 1]);
        assert_eq!(count(&[], 3), [0; 0]);
        let found = all_right(&[0.4, 0.1, 0.3, 0.2], Binning::EqualMass { bins: bins(2) });
        assert_eq!((found[0].lower, found[0].upper), (0.1, 0.2));
        assert_eq!((found[1].lower, found[1].upper), (0.3, 0.4));
    }

    #[test]
    fn bins_hold_means() {
        let predictions = TopLabel::new(vec![0.6, 0.7, 0.1], vec![true, false, false]).unwrap();
        let edges = Edges::LeftClosed;
        let found = reliability_bins(&predictions, Binning::EqualWidth { bins: bins(2), edges });
        assert_eq!((found[0].count, found[0].accuracy, found[0].confidence), (1, 0.0, 0.1));
        assert_eq!((found[1].count, found[1].accuracy), (2, 0.5));
        assert!((found[1].gap() + 0.15).abs() < 1e-15);
    }

    #[test]
    fn binnings_are_written_in_kebab_case() {
        let binning = Binning::EqualWidth { bins: bins(10), edges: Edges::RightClosed };
        let written = serde_json::to_string(&binning).unwrap();
        assert_eq!(written, r#"{"equal-width":{"bins":10,"edges":"right-closed"}}"#);
        assert_eq!(serde_json::from_str::<Binning>(&written).unwrap(), binning);
        assert!(serde_json::from_str::<Binning>(r#"{"equal-mass":{"bins":0}}"#).is_err());
    }
}
