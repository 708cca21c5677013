//! The metrics of one set of predictions, and their confidence intervals: [`ExactIntervals`], always; [`Intervals`], by
//! bootstrap.

mod interval;
mod intervals;
mod rows;

use calmix_core::matrix::Matrix;
use serde::{Deserialize, Serialize};

use crate::calibrator::temperature::Temperature;
use crate::error::MetricsError;
use crate::measure::{Counts, debiased_squared_error};

pub use interval::{ENOUGH_FOR_ECE, ENOUGH_TO_JUDGE, ExactIntervals, Interval, LEVEL};
pub use intervals::{Intervals, Resampling};
pub use rows::EDGES;
pub(crate) use rows::PreparedRows;

/// The number of metrics.
pub(crate) const METRICS: usize = 12;

/// Metrics of accuracy and calibration. Shares are in [0, 1], not per cent. Lower is better, except for the mean confidence
/// and the confidence gap, which is best at zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// The share of wrong predictions; of equal logits, the first is the prediction.
    pub error: f64,
    /// The share of samples whose class is not among the five likeliest; zero with five classes or fewer.
    pub top_5_error: f64,
    /// The mean confidence: the probability of the predicted class.
    pub mean_confidence: f64,
    /// Mean confidence − accuracy: positive if the network is over-confident, negative if it is under-confident.
    pub confidence_gap: f64,
    /// Expected calibration error (ECE) of the predicted class, 10 bins of equal width with [`EDGES`].
    pub ece_10: f64,
    /// ECE with 15 bins of equal width.
    pub ece_15: f64,
    /// ECE with 15 bins of equal mass.
    pub adaptive_ece: f64,
    /// The mean over classes of the calibration error of each class's probability, 15 bins of equal width with [`EDGES`].
    pub class_wise_ece: f64,
    /// Smooth ECE: the calibration error without bins.
    pub smooth_ece: f64,
    /// Mean negative log-likelihood, in nats.
    pub nll: f64,
    /// Brier score, summed over classes: from 0 to 2.
    pub brier: f64,
    /// Area under the risk-coverage curve.
    pub aurc: f64,
    /// The squared calibration error of 15 bins of equal width, with the bias of sampling noise removed; may be negative.
    /// `None` in results that are a median of several evaluations, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debiased_squared_error: Option<f64>,
}

impl Metrics {
    /// Evaluates softmax(`logits` / `temperature`) against `labels`.
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, or a logit is not finite.
    pub fn of(logits: Matrix<'_>, labels: &[u32], temperature: Temperature) -> Result<Self, MetricsError> {
        Ok(Self::of_rows(&PreparedRows::new(logits, labels, temperature)?))
    }

    /// Computes the metrics of rows that all count once.
    pub(crate) fn of_rows(rows: &PreparedRows) -> Self {
        let debiased_squared_error = Some(debiased_squared_error(&rows.bins()));
        Self { smooth_ece: rows.smooth_ece(), debiased_squared_error, ..Self::without_smooth(rows) }
    }

    /// Computes the metrics without the smooth ECE, which costs more than all others together.
    pub(crate) fn without_smooth(rows: &PreparedRows) -> Self {
        let [before @ .., nll, brier, aurc] = rows.metrics(&Counts::once(rows.len()));
        let [error, top_5_error, mean, gap, ece_10, ece_15, adaptive, class_wise] = before;
        let smooth = 0.0;
        Self::from_values([
            error,
            top_5_error,
            mean,
            gap,
            ece_10,
            ece_15,
            adaptive,
            class_wise,
            smooth,
            nll,
            brier,
            aurc,
        ])
    }

    /// Returns the metrics in the order of their fields.
    pub(crate) fn values(&self) -> [f64; METRICS] {
        let Self { error, top_5_error, mean_confidence, confidence_gap, ece_10, ece_15, .. } = *self;
        let Self { adaptive_ece, class_wise_ece, smooth_ece, nll, brier, aurc, .. } = *self;
        [
            error,
            top_5_error,
            mean_confidence,
            confidence_gap,
            ece_10,
            ece_15,
            adaptive_ece,
            class_wise_ece,
            smooth_ece,
            nll,
            brier,
            aurc,
        ]
    }

    pub(crate) fn from_values(values: [f64; METRICS]) -> Self {
        let [error, top_5_error, mean_confidence, confidence_gap, ece_10, ece_15, rest @ ..] = values;
        let [adaptive_ece, class_wise_ece, smooth_ece, nll, brier, aurc] = rest;
        Self {
            error,
            top_5_error,
            mean_confidence,
            confidence_gap,
            ece_10,
            ece_15,
            adaptive_ece,
            class_wise_ece,
            smooth_ece,
            nll,
            brier,
            aurc,
            debiased_squared_error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{TopLabel, smooth_ece};

    use super::*;

    #[test]
    fn a_hand_finds_the_same() {
        // Softmax of (ln 3, 0) is (¾, ¼): three predictions at confidence ¾, of which two are right.
        let three = 3.0_f32.ln();
        let z = [three, 0.0, 0.0, three, three, 0.0];
        let z = Matrix::new(&z, 3, 2).unwrap();
        let metrics = Metrics::of(z, &[0, 1, 1], Temperature::IDENTITY).unwrap();
        // ln 3 in f32 is off by up to 6e-8, and so are the confidences.
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-7, "{found} {wanted}");
        close(metrics.error, 1.0 / 3.0);
        assert_eq!(metrics.top_5_error, 0.0);
        close(metrics.mean_confidence, 0.75);
        close(metrics.confidence_gap, 0.75 - 2.0 / 3.0);
        for ece in [metrics.ece_10, metrics.ece_15, metrics.adaptive_ece] {
            close(ece, 0.75 - 2.0 / 3.0);
        }
        // Class 0: at ¾ one of two, at ¼ none of one. Class 1: at ¼ one of two, at ¾ one of one.
        close(metrics.class_wise_ece, f64::midpoint((0.5 + 0.25) / 3.0, (0.5 + 0.25) / 3.0));
        close(metrics.nll, (2.0 * (4.0_f64 / 3.0).ln() + 4.0_f64.ln()) / 3.0);
        close(metrics.brier, (2.0 * 0.125 + 1.125) / 3.0);
        // All tied: the expected risk is ⅓ at every coverage.
        close(metrics.aurc, 1.0 / 3.0);
        let predictions = TopLabel::from_logits(z, &[0, 1, 1], 1.0).unwrap();
        assert_eq!(metrics.smooth_ece, smooth_ece(&predictions).error);
    }

    #[test]
    fn five_guesses_are_the_first_five() {
        let z = [7.0, 6.0, 5.0, 4.0, 3.0, 3.0, 7.0, 6.0, 5.0, 4.0, 3.0, 3.0];
        let z = Matrix::new(&z, 2, 6).unwrap();
        let metrics = Metrics::of(z, &[4, 5], Temperature::IDENTITY).unwrap();
        assert_eq!((metrics.error, metrics.top_5_error), (1.0, 0.5));
    }

    #[test]
    fn the_order_of_values_is_that_of_the_fields() {
        let numbers = std::array::from_fn(|i| i as f64);
        let metrics = Metrics::from_values(numbers);
        assert_eq!(metrics.values(), numbers);
        let written = serde_json::to_string(&metrics).unwrap();
        assert!(written.contains(r#""ece_15":5.0"#) && written.contains(r#""aurc":11.0"#), "{written}");
    }

    #[test]
    fn nothing_measures_nothing() {
        let nothing = Matrix::new(&[], 0, 3).unwrap();
        assert_eq!(Metrics::of(nothing, &[], Temperature::IDENTITY).unwrap().values(), [0.0; METRICS]);
    }
}
