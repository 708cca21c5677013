//! Vector scaling: a scale and a bias per class, softmax(w ⊙ z + b).
//!
//! Guo, Pleiss, Sun, Weinberger 2017, section 4.2. Unlike a temperature it can repair a class that is
//! favoured as a whole, and it can change the winning class. It has 2C parameters, so few labels over-fit it
//! quickly; the penalty towards the identity prevents that.
//!
//! ```
//! use calmix_core::matrix::Matrix;
//! use calmix_metrics::calibrator::vector::{DEFAULT_L2, VectorScaling};
//!
//! let logits = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
//! let logits = Matrix::new(&logits, 4, 2)?;
//! let fit = VectorScaling::fit(logits, &[1, 0, 1, 1], DEFAULT_L2, &|| false)?;
//! assert!(fit.converged);
//! assert!(fit.scaling.bias()[1] > fit.scaling.bias()[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use calmix_core::matrix::Matrix;
use serde::{Deserialize, Serialize};

use crate::checked;
use crate::error::MetricsError;
use crate::exponential::exp_of_negative;
use crate::lbfgs::Search;

/// The default weight of the penalty: a standard normal prior on every wᵢ − 1 and bᵢ.
///
/// The penalty is added to the *summed* NLL (it equals scikit-learn's `C = 1`): it dominates with a handful of samples,
/// keeps the parameters of separable classes finite, and loses influence as samples are added.
pub const DEFAULT_L2: f64 = 1.0;

const MAX_ITERATIONS: usize = 1_000;
// A gradient of the mean objective, in variables scaled to a curvature of at most about one.
const GRADIENT_TOLERANCE: f64 = 1e-9;

/// A scale and a bias per class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredVector")]
pub struct VectorScaling {
    scale: Vec<f64>,
    bias: Vec<f64>,
}

/// A fitted vector scaling, with the outcome of the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorFit {
    /// The fitted scales and biases.
    pub scaling: VectorScaling,
    /// The number of samples it was fitted on.
    pub n: usize,
    /// The number of steps taken.
    pub iterations: usize,
    /// Whether the optimum was reached within the maximum number of steps. If not, the result is still no worse than no
    /// calibration.
    pub converged: bool,
}

impl VectorScaling {
    /// Creates it from one scale and one bias per class.
    ///
    /// # Errors
    /// If their numbers differ, or one is not finite.
    pub fn new(scale: Vec<f64>, bias: Vec<f64>) -> Result<Self, MetricsError> {
        checked::length("biases", scale.len(), bias.len())?;
        checked::finite("the scale of class", &scale)?;
        checked::finite("the bias of class", &bias)?;
        Ok(Self { scale, bias })
    }

    /// Returns the scaling of `classes` classes that changes nothing.
    pub fn identity(classes: usize) -> Self {
        Self { scale: vec![1.0; classes], bias: vec![0.0; classes] }
    }

    /// Fits the scaling with the smallest NLL + `l2`/2 · (Σ(w − 1)² + Σb²), with the NLL summed over the rows.
    ///
    /// Never worse in NLL on these rows than the identity. With `l2 = 0`, separable rows have no optimum:
    /// the fit then stops where the gradient has nearly vanished.
    ///
    /// # Errors
    /// If there are no rows, labels and rows do not match, a logit is not finite, `l2` is negative or not finite, or `stop`,
    /// which is called in every step, returns true.
    pub fn fit(
        logits: Matrix,
        labels: &[u32],
        l2: f64,
        stop: &dyn Fn() -> bool,
    ) -> Result<VectorFit, MetricsError> {
        checked::fit_rows(logits, labels)?;
        checked::parameter("penalty l2", l2, "zero or more, and finite", |l2| l2 >= 0.0 && l2.is_finite())?;
        let n = labels.len();
        let classes = logits.width();
        let l2 = l2 / n as f64;
        let unit = units(logits, l2);
        // The optimiser sees x = (θ − identity) / unit.
        let at = |x: &[f64]| {
            let mut scaling = Self::identity(classes);
            for (k, x) in x.iter().enumerate() {
                *scaling.parameter(k) += x * unit[k];
            }
            scaling
        };
        let search = Search::new(GRADIENT_TOLERANCE, MAX_ITERATIONS);
        let minimum = search.minimise(vec![0.0; 2 * classes], |x, gradient| {
            checked::not_stopped(stop)?;
            let mut value = at(x).nll_and_gradient(logits, labels, gradient);
            for ((g, x), unit) in gradient.iter_mut().zip(x).zip(&unit) {
                value += 0.5 * l2 * (x * unit) * (x * unit);
                *g = (*g + l2 * x * unit) * unit;
            }
            Ok(value)
        })?;
        // Every step lowers NLL + penalty, and the penalty is zero at the identity and nowhere negative, so the NLL
        // is never higher than that of the identity.
        Ok(VectorFit {
            scaling: at(&minimum.point),
            n,
            iterations: minimum.iterations,
            converged: minimum.converged,
        })
    }

    /// Returns the scale of each class.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// Returns the bias of each class.
    pub fn bias(&self) -> &[f64] {
        &self.bias
    }

    /// Computes softmax(w ⊙ z + b), row by row.
    ///
    /// # Errors
    /// If the rows have another number of classes.
    pub fn probabilities(&self, logits: Matrix) -> Result<Vec<f32>, MetricsError> {
        self.check_classes(logits)?;
        let mut all = Vec::with_capacity(logits.data().len());
        let mut exponentials = vec![0.0; logits.width()];
        for row in logits.iter() {
            let (_, sum) = self.exponentials(row, &mut exponentials);
            all.extend(exponentials.iter().map(|e| (e / sum) as f32));
        }
        Ok(all)
    }

    /// Writes w ⊙ z + b into `out`, within the range of f32.
    ///
    /// # Errors
    /// If the row has another number of classes.
    pub(super) fn logits_into(&self, row: &[f32], out: &mut [f32]) -> Result<(), MetricsError> {
        let expected = self.scale.len();
        let got = row.len();
        if expected != got {
            return Err(MetricsError::Classes { expected, got });
        }
        for (((out, &z), w), b) in out.iter_mut().zip(row).zip(&self.scale).zip(&self.bias) {
            *out = (w * f64::from(z) + b).clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
        }
        Ok(())
    }

    /// Computes the mean NLL of the labels under this scaling, in nats.
    ///
    /// # Errors
    /// As [`VectorScaling::fit`], and if the rows have another number of classes.
    pub fn negative_log_likelihood(&self, logits: Matrix, labels: &[u32]) -> Result<f64, MetricsError> {
        checked::fit_rows(logits, labels)?;
        self.check_classes(logits)?;
        Ok(self.nll_and_gradient(logits, labels, &mut vec![0.0; 2 * self.scale.len()]))
    }

    fn check_classes(&self, logits: Matrix) -> Result<(), MetricsError> {
        let expected = self.scale.len();
        let got = logits.width();
        if expected == got { Ok(()) } else { Err(MetricsError::Classes { expected, got }) }
    }

    /// Returns parameter `k` of 2C: the scales, then the biases.
    fn parameter(&mut self, k: usize) -> &mut f64 {
        let classes = self.scale.len();
        if k < classes { &mut self.scale[k] } else { &mut self.bias[k - classes] }
    }

    /// Writes exp(a − max a), a = w ⊙ z + b, into `out`; returns the maximum and the sum.
    fn exponentials(&self, row: &[f32], out: &mut [f64]) -> (f64, f64) {
        for (((a, &z), w), b) in out.iter_mut().zip(row).zip(&self.scale).zip(&self.bias) {
            *a = w * f64::from(z) + b;
        }
        let top = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for a in &mut *out {
            *a = exp_of_negative(*a - top);
        }
        (top, out.iter().sum())
    }

    /// Computes the mean NLL of checked rows; writes its gradient by scale and bias into `gradient`.
    fn nll_and_gradient(&self, logits: Matrix, labels: &[u32], gradient: &mut [f64]) -> f64 {
        let (by_scale, by_bias) = gradient.split_at_mut(self.scale.len());
        by_scale.fill(0.0);
        by_bias.fill(0.0);
        let weight = 1.0 / labels.len() as f64;
        let mut nll = 0.0;
        let mut exponentials = vec![0.0; logits.width()];
        for (row, &label) in logits.iter().zip(labels) {
            let y = label as usize;
            let (top, sum) = self.exponentials(row, &mut exponentials);
            nll += libm::log(sum) + (top - (self.scale[y] * f64::from(row[y]) + self.bias[y]));
            for (class, (&e, &z)) in exponentials.iter().zip(row).enumerate() {
                let error = (e / sum - f64::from(u8::from(class == y))) * weight;
                by_scale[class] += error * f64::from(z);
                by_bias[class] += error;
            }
        }
        nll * weight
    }
}

/// Returns the unit of each parameter in which the curvature along it is at most about one.
///
/// The curvature by wⱼ is at most E(z²ⱼ)/4, by bⱼ at most 1/4. Without this, logits of a thousand and biases of one would make a
/// quasi-Newton method slow.
fn units(logits: Matrix, l2: f64) -> Vec<f64> {
    let mut squares = vec![0.0; logits.width()];
    for row in logits.iter() {
        for (s, &z) in squares.iter_mut().zip(row) {
            *s += f64::from(z) * f64::from(z);
        }
    }
    let unit = |mean_square: f64| {
        let curvature = 0.25 * mean_square + l2;
        if curvature > 0.0 { 1.0 / curvature.sqrt() } else { 1.0 }
    };
    let n = logits.rows() as f64;
    let biases = std::iter::repeat_n(unit(1.0), logits.width());
    squares.iter().map(|s| unit(s / n)).chain(biases).collect()
}

/// The stored parameters, which are checked when they are read.
#[derive(Deserialize)]
struct StoredVector {
    scale: Vec<f64>,
    bias: Vec<f64>,
}

impl TryFrom<StoredVector> for VectorScaling {
    type Error = MetricsError;
    fn try_from(stored: StoredVector) -> Result<Self, MetricsError> {
        Self::new(stored.scale, stored.bias)
    }
}

#[cfg(test)]
mod tests;
