//! Temperature scaling: divides the logits by one number, so that the confidence matches held-out labels.
//!
//! Guo, Pleiss, Sun, Weinberger: "On calibration of modern neural networks", ICML 2017. The predicted class
//! never changes. The temperature minimises the negative log-likelihood (NLL), which is convex in β = 1/T, so
//! a bracketed Newton iteration finds the optimum: no learning rate, no starting point, no negative T.
//!
//! A lower NLL is guaranteed, a lower ECE is not: one number cannot undo every miscalibration, and ECE on few
//! samples is mostly noise. Fit on samples that the network was not trained on; with few of them, use
//! [`Temperature::fit_penalised`].
//!
//! ```
//! use calmix_core::matrix::Matrix;
//! use calmix_metrics::calibrator::temperature::Temperature;
//!
//! // Margins of 4 claim 98%, but only three of four are right.
//! let logits = [4.0, 0.0, 0.0, 4.0, 4.0, 0.0, 0.0, 4.0];
//! let logits = Matrix::new(&logits, 4, 2)?;
//! let temperature = Temperature::fit(logits, &[0, 1, 0, 0])?;
//! assert!((temperature.probabilities(logits)[0] - 0.75).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod newton;
mod penalised;
mod prior;

use calmix_core::matrix::{Matrix, MatrixOf, Scalar};
use serde::{Deserialize, Serialize};

use crate::checked;
use crate::error::MetricsError;
use crate::exponential::{RelativeRow, inverse, negative_log_likelihood};

pub use prior::TemperaturePrior;

/// The lowest temperature that a fit returns.
///
/// If every prediction is right, the NLL has no minimum as T → 0; if most are wrong, none as T → ∞.
/// Published temperatures of image classifiers lie between about 0.5 and 5. Values far beyond that only result from a set
/// that is too small, and would turn the prediction into an argmax or a uniform distribution.
pub const MIN_TEMPERATURE: f64 = 0.05;

/// The highest temperature that a fit returns; see [`MIN_TEMPERATURE`].
pub const MAX_TEMPERATURE: f64 = 20.0;

/// A temperature: positive and finite. It is stored beside a model and never changes its weights.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature(f64);

impl Temperature {
    /// The temperature that changes nothing.
    pub const IDENTITY: Self = Self(1.0);

    /// Returns a given temperature, of any positive size.
    ///
    /// # Errors
    /// If `value` is not positive and finite.
    pub fn new(value: f64) -> Result<Self, MetricsError> {
        checked::temperature(value)?;
        Ok(Self(value))
    }

    /// Returns the number by which logits are divided.
    pub fn value(self) -> f64 {
        self.0
    }

    /// Returns whether the fit ended at [`MIN_TEMPERATURE`] or [`MAX_TEMPERATURE`], usually because there are too few labels.
    pub fn is_at_bound(self) -> bool {
        self.0 <= MIN_TEMPERATURE || self.0 >= MAX_TEMPERATURE
    }

    /// Writes softmax(`logits` / T) into `probabilities`, which must have the same length.
    pub fn probabilities_into<T: Scalar>(self, logits: &[T], probabilities: &mut [T]) {
        RelativeRow::new(logits).softmax_into(inverse(self.0), probabilities);
    }

    /// Computes softmax(`logits` / T), row by row.
    pub fn probabilities<T: Scalar>(self, logits: MatrixOf<'_, T>) -> Vec<T> {
        let mut all = vec![T::from_f64(0.0); logits.data().len()];
        if logits.width() > 0 {
            for (row, out) in logits.iter().zip(all.chunks_exact_mut(logits.width())) {
                self.probabilities_into(row, out);
            }
        }
        all
    }
}

impl TryFrom<f64> for Temperature {
    type Error = MetricsError;
    fn try_from(value: f64) -> Result<Self, MetricsError> {
        Self::new(value)
    }
}

impl From<Temperature> for f64 {
    fn from(temperature: Temperature) -> f64 {
        temperature.0
    }
}

/// The logits and the label of one sample.
type LabelledRow<'a, T> = (&'a [T], u32);

fn pairs<'a, T: Scalar>(
    logits: MatrixOf<'a, T>,
    labels: &'a [u32],
) -> impl Iterator<Item = LabelledRow<'a, T>> + Clone {
    logits.iter().zip(labels.iter().copied())
}

/// Computes the summed NLL of checked rows.
fn nll_sum<'a, T: Scalar + 'a>(
    rows: impl Iterator<Item = LabelledRow<'a, T>>,
    temperature: Temperature,
) -> f64 {
    rows.map(|(row, label)| negative_log_likelihood(row, label as usize, temperature.0)).sum()
}

#[cfg(test)]
mod tests;
