//! Confidence intervals of metrics; the exact ones of an error and of a confidence gap, for any number of images.

use serde::{Deserialize, Serialize};

use super::Metrics;
use crate::stats::clopper_pearson;

/// The smallest number of images for which an error is compared: its 95% interval is then at most about 28 points wide.
pub const ENOUGH_TO_JUDGE: u64 = 50;
/// The smallest number of images for which an ECE is shown: with fifteen bins and fifty images, a calibrated model has a
/// measured ECE of 12.7%, where the true value is 1.5%.
pub const ENOUGH_FOR_ECE: u64 = 1_000;
/// The confidence level of every interval that is printed.
pub const LEVEL: f64 = 0.95;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The exact intervals of the metrics that are shares of the images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactIntervals {
    /// The Clopper–Pearson interval of the error.
    pub error: Interval,
    /// The Clopper–Pearson interval of the top-5 error.
    pub top_5_error: Interval,
    /// The interval of the confidence gap: the mean confidence minus the interval of the accuracy.
    pub confidence_gap: Interval,
}

impl ExactIntervals {
    /// Computes the intervals of metrics on `samples` images; `None` without images, or if the level is not in (0, 1).
    pub fn of(metrics: &Metrics, samples: u64, level: f64) -> Option<Self> {
        let n = usize::try_from(samples).ok()?;
        let interval = |share: f64| {
            let interval = clopper_pearson((share * n as f64).round() as usize, n, level).ok()?;
            Some(Interval { low: interval.low, high: interval.high })
        };
        let error = interval(metrics.error)?;
        let gap = |error: f64| metrics.mean_confidence - (1.0 - error);
        let confidence_gap = Interval { low: gap(error.low), high: gap(error.high) };
        Some(Self { error, top_5_error: interval(metrics.top_5_error)?, confidence_gap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::METRICS;

    #[test]
    fn four_right_answers_prove_little() {
        let mut metrics = Metrics::from_values([0.0; METRICS]);
        (metrics.mean_confidence, metrics.confidence_gap) = (0.9, -0.1);
        let interval = ExactIntervals::of(&metrics, 4, LEVEL).unwrap();
        assert!(interval.error.low == 0.0 && (interval.error.high - 0.602).abs() < 1e-3);
        // Right between 40 and 100% of the time.
        let gap = interval.confidence_gap;
        assert!((gap.low + 0.1).abs() < 1e-12 && (gap.high - 0.502).abs() < 1e-3, "{gap:?}");
        assert_eq!(ExactIntervals::of(&metrics, 0, LEVEL), None);
        assert_eq!(ExactIntervals::of(&metrics, 4, 1.0), None);
    }
}
