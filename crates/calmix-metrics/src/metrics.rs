//! The metrics of one set of predictions, and their confidence intervals: [`ExactIntervals`], always; [`Intervals`], by
//! bootstrap.

mod intervals;
mod rows;

use calmix_core::matrix::Matrix;
use serde::{Deserialize, Serialize};

use crate::calibrator::temperature::Temperature;
use crate::error::MetricsError;
use crate::measure::{Counts, debiased_squared_error};

pub use intervals::{
    ExactIntervals, Interval, Intervals, LEVEL, MIN_SAMPLES_FOR_ECE, MIN_SAMPLES_TO_ASSESS, Resampling,
};
pub use rows::EDGES;
pub(crate) use rows::PreparedRows;

/// The number of metrics.
pub(crate) const METRICS: usize = 12;
/// The index of the smooth ECE in [`Metrics::values`].
const SMOOTH_ECE: usize = 8;

/// Metrics of accuracy and calibration. Shares are in [0, 1], not per cent. Lower is better, except for macro F1, the mean
/// confidence, and the confidence gap, which is best at zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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
    /// The mean error of the classes that have samples. `None` without samples, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balanced_error: Option<f64>,
    /// The mean F1 of the classes that have samples or predictions; higher is better. `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macro_f1: Option<f64>,
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
        let computed = rows.metrics(&Counts::once(rows.len()));
        let mut values = [0.0; METRICS];
        values[..SMOOTH_ECE].copy_from_slice(&computed[..SMOOTH_ECE]);
        values[SMOOTH_ECE + 1..].copy_from_slice(&computed[SMOOTH_ECE..]);
        let means = rows.classes.means(&Counts::once(rows.len()));
        Self {
            balanced_error: means.map(|means| means.balanced_error),
            macro_f1: means.map(|means| means.macro_f1),
            ..Self::from_values(values)
        }
    }

    /// Returns the metrics in the order of their fields, without the optional ones.
    pub(crate) fn values(&self) -> [f64; METRICS] {
        let mut metrics = *self;
        metrics.fields().map(|field| *field)
    }

    pub(crate) fn from_values(values: [f64; METRICS]) -> Self {
        let mut metrics = Self::default();
        for (field, value) in metrics.fields().into_iter().zip(values) {
            *field = value;
        }
        metrics
    }

    fn fields(&mut self) -> [&mut f64; METRICS] {
        [
            &mut self.error,
            &mut self.top_5_error,
            &mut self.mean_confidence,
            &mut self.confidence_gap,
            &mut self.ece_10,
            &mut self.ece_15,
            &mut self.adaptive_ece,
            &mut self.class_wise_ece,
            &mut self.smooth_ece,
            &mut self.nll,
            &mut self.brier,
            &mut self.aurc,
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{TopLabel, smooth_ece};

    use super::*;

    #[test]
    fn metrics_of_three_predictions() {
        // Softmax of (ln 3, 0) is (¾, ¼): three predictions at confidence ¾, of which two are right.
        let three = 3.0_f32.ln();
        let z = [three, 0.0, 0.0, three, three, 0.0];
        let z = Matrix::new(&z, 3, 2).unwrap();
        let metrics = Metrics::of(z, &[0, 1, 1], Temperature::IDENTITY).unwrap();
        // ln 3 in f32 is off by up to 6e-8, and so are the confidences.
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-7, "{found} {expected}");
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
    fn top_5_error_counts_the_first_five() {
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
    fn earlier_metrics_have_no_balanced_error() {
        let metrics =
            Metrics::of(Matrix::new(&[1.0, 0.0], 1, 2).unwrap(), &[1], Temperature::IDENTITY).unwrap();
        assert_eq!((metrics.balanced_error, metrics.macro_f1), (Some(1.0), Some(0.0)));
        let earlier = Metrics { balanced_error: None, macro_f1: None, ..metrics };
        let written = serde_json::to_string(&earlier).unwrap();
        assert!(!written.contains("balanced_error") && !written.contains("macro_f1"), "{written}");
        assert_eq!(serde_json::from_str::<Metrics>(&written).unwrap(), earlier);
    }

    #[test]
    fn metrics_of_no_rows_are_zero() {
        let nothing = Matrix::new(&[], 0, 3).unwrap();
        assert_eq!(Metrics::of(nothing, &[], Temperature::IDENTITY).unwrap().values(), [0.0; METRICS]);
    }
}
