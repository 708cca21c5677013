//! Exact limits of an error and of a confidence gap, at any number of images.

use super::{Figures, Limits};
use crate::stats::clopper_pearson;

/// From this many images on an error is worth a comparison: its limits are then some 28 points apart at most.
pub const ENOUGH_TO_JUDGE: u64 = 50;
/// From this many images on an ECE is shown: with fifteen bins, fifty images of a calibrated model read 12.7 % where the truth
/// is 1.5 %.
pub const ENOUGH_FOR_ECE: u64 = 1_000;
/// The level of every interval that is printed.
pub const LEVEL: f64 = 0.95;

/// The limits of the figures that are shares of so many images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactLimits {
    /// Of the error: Clopper and Pearson's.
    pub error: Limits,
    /// Of the top-5 error.
    pub top_5_error: Limits,
    /// Of the confidence gap: the mean confidence minus the limits of the accuracy.
    pub confidence_gap: Limits,
}

impl ExactLimits {
    /// The limits of figures of `samples` images; none without images, and for a level outside (0, 1).
    pub fn of(figures: &Figures, samples: u64, level: f64) -> Option<Self> {
        let n = usize::try_from(samples).ok()?;
        let limits = |share: f64| {
            let interval = clopper_pearson((share * n as f64).round() as usize, n, level).ok()?;
            Some(Limits { low: interval.low, high: interval.high })
        };
        let error = limits(figures.error)?;
        let gap = |error: f64| figures.mean_confidence - (1.0 - error);
        let confidence_gap = Limits { low: gap(error.low), high: gap(error.high) };
        Some(Self { error, top_5_error: limits(figures.top_5_error)?, confidence_gap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FIGURES;

    #[test]
    fn four_right_answers_prove_little() {
        let mut figures = Figures::from_values([0.0; FIGURES]);
        (figures.mean_confidence, figures.confidence_gap) = (0.9, -0.1);
        let limits = ExactLimits::of(&figures, 4, LEVEL).unwrap();
        assert!(limits.error.low == 0.0 && (limits.error.high - 0.602).abs() < 1e-3);
        // Right between 40 and 100 % of the time.
        let gap = limits.confidence_gap;
        assert!((gap.low + 0.1).abs() < 1e-12 && (gap.high - 0.502).abs() < 1e-3, "{gap:?}");
        assert_eq!(ExactLimits::of(&figures, 0, LEVEL), None);
        assert_eq!(ExactLimits::of(&figures, 4, 1.0), None);
    }
}
