//! Calibrators, which correct the confidence of a model after training.
//!
//! They are stored beside a model and never change its weights: [`temperature`], [`vector`] scaling and [`isotonic`]
//! regression. [`Calibrator`] is one of any kind, with one interface to fit, apply and store it. [`CalibratorChoice`] chooses
//! the kind that a set of labels supports; [`cross_fit`] evaluates a calibrator without a second set of labels.
//!
//! A temperature works with any number of labels. Vector scaling has two parameters per class and isotonic regression as many
//! as the labels require, so they need more labels ([`CalibratorKind::min_labels`]).

pub mod cross_fit;
pub mod isotonic;
pub mod temperature;
pub mod vector;

use calmix_core::lanes;
use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::abstention::log_odds;
use crate::checked;
use crate::error::MetricsError;
use isotonic::Isotonic;
use temperature::Temperature;
use vector::{DEFAULT_L2, VectorScaling};

pub use cross_fit::{CalibratorChoice, TriedCalibrator, is_lower_by, temperature_if_clearly_better};

/// The kinds of calibrators, the simplest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalibratorKind {
    /// One number that divides the logits.
    Temperature,
    /// A scale and a bias per class. The predicted class may change.
    Vector,
    /// A monotone function of the confidence.
    Isotonic,
}

/// A fitted calibrator. It is stored beside a model and never changes its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Calibrator {
    /// Divides the logits.
    Temperature {
        /// The number by which logits are divided.
        temperature: Temperature,
    },
    /// Scales and shifts the logits of each class.
    Vector(VectorScaling),
    /// Maps the confidence in the predicted class. Each row is divided by the temperature that gives this confidence, so the
    /// order of the classes stays the same, and their probabilities still sum to one.
    Isotonic(Isotonic),
}

impl CalibratorKind {
    /// All kinds, the simplest first.
    pub const ALL: [Self; 3] = [Self::Temperature, Self::Vector, Self::Isotonic];

    /// Returns the smallest number of labels with which this kind is tried.
    pub fn min_labels(self) -> usize {
        match self {
            Self::Temperature => 10,
            Self::Vector => 100,
            Self::Isotonic => 1_000,
        }
    }

    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::Vector => "vector scaling",
            Self::Isotonic => "isotonic regression",
        }
    }
}

impl Calibrator {
    /// The calibrator that changes nothing.
    pub const IDENTITY: Self = Self::Temperature { temperature: Temperature::IDENTITY };

    /// Fits a calibrator: a temperature by [`Temperature::fit_penalised`], vector scaling with its default penalty, or
    /// isotonic regression of the confidence in the predicted class.
    ///
    /// # Errors
    /// If there are no rows, labels and rows do not match, a logit is not finite, or `stop` returns true.
    pub fn fit(
        kind: CalibratorKind,
        logits: Matrix,
        labels: &[u32],
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        checked::not_stopped(stop)?;
        Ok(match kind {
            CalibratorKind::Temperature => {
                Self::Temperature { temperature: Temperature::fit_penalised(logits, labels)? }
            }
            CalibratorKind::Vector => {
                Self::Vector(VectorScaling::fit(logits, labels, DEFAULT_L2, stop)?.scaling)
            }
            CalibratorKind::Isotonic => Self::Isotonic(Isotonic::fit_top_label(logits, labels)?),
        })
    }

    /// Returns its kind.
    pub fn kind(&self) -> CalibratorKind {
        match self {
            Self::Temperature { .. } => CalibratorKind::Temperature,
            Self::Vector(_) => CalibratorKind::Vector,
            Self::Isotonic(_) => CalibratorKind::Isotonic,
        }
    }

    /// Returns whether it may change the predicted class of a row.
    pub fn may_change_labels(&self) -> bool {
        self.kind() == CalibratorKind::Vector
    }

    /// Computes the score by which a model abstains: from the raw logits, unless the calibrator may change the predicted
    /// class ([why](crate::abstention)).
    pub fn answer_score(&self, logits: &[f32]) -> Result<f64, MetricsError> {
        if !self.may_change_labels() {
            return Ok(log_odds(logits));
        }
        let mut calibrated = vec![0.0; logits.len()];
        self.apply_to_row(logits, &mut calibrated)?;
        Ok(log_odds(&calibrated))
    }

    /// Computes the calibrated logits of all rows; their softmax is the calibrated probability.
    ///
    /// # Errors
    /// If the calibrator is for another number of classes.
    pub fn apply(&self, logits: Matrix) -> Result<Vec<f32>, MetricsError> {
        let mut calibrated = vec![0.0; logits.data().len()];
        for (row, out) in logits.iter().zip(calibrated.chunks_mut(logits.width().max(1))) {
            self.apply_to_row(row, out)?;
        }
        Ok(calibrated)
    }

    /// Computes the calibrated probabilities of all rows.
    pub fn probabilities(&self, logits: Matrix) -> Result<Vec<f32>, MetricsError> {
        match self {
            Self::Temperature { temperature } => Ok(temperature.probabilities(logits)),
            Self::Vector(scaling) => scaling.probabilities(logits),
            Self::Isotonic(_) => {
                let calibrated = self.apply(logits)?;
                let calibrated = checked::matrix("logits", &calibrated, logits.rows(), logits.width())?;
                Ok(Temperature::IDENTITY.probabilities(calibrated))
            }
        }
    }

    /// Writes the calibrated probabilities of a row into `out`, which must have the same length; returns the predicted class.
    pub fn probabilities_into(&self, row: &[f32], out: &mut [f32]) -> Result<usize, MetricsError> {
        if let Self::Temperature { temperature } = self {
            checked::length("probabilities", row.len(), out.len())?;
            temperature.probabilities_into(row, out);
            return Ok(argmax(row));
        }
        let mut calibrated = vec![0.0; row.len()];
        self.apply_to_row(row, &mut calibrated)?;
        Temperature::IDENTITY.probabilities_into(&calibrated, out);
        Ok(argmax(if self.may_change_labels() { &calibrated } else { row }))
    }

    /// Writes the calibrated logits of a row into `out`, which must have the same length.
    pub fn apply_to_row(&self, row: &[f32], out: &mut [f32]) -> Result<(), MetricsError> {
        checked::length("calibrated logits", row.len(), out.len())?;
        match self {
            Self::Temperature { temperature } => divide(row, temperature.value(), out),
            Self::Vector(scaling) => scaling.logits_into(row, out)?,
            Self::Isotonic(isotonic) => divide(row, 1.0 / sharpness(row, isotonic), out),
        }
        Ok(())
    }
}

/// Divides the logits of a row; if one would overflow f32, the largest logit is subtracted first.
fn divide(row: &[f32], by: f64, out: &mut [f32]) {
    let top = f64::from(lanes::max(row));
    let is_finite = row.iter().all(|z| (f64::from(*z) / by).abs() < f64::from(f32::MAX));
    for (out, &z) in out.iter_mut().zip(row) {
        let calibrated = if is_finite { f64::from(z) / by } else { (f64::from(z) - top) / by };
        *out = calibrated.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
    }
}

/// Returns the lowest and the highest confidence that an isotonic calibrator gives to the predicted class.
///
/// The calibrator returns 0 or 1 where all its labels agree; the confidence is limited to half a label from certainty, which
/// is as much as they support, and is at least 1/C, since the predicted class cannot have less.
pub fn confidence_limits(isotonic: &Isotonic, classes: usize) -> (f64, f64) {
    let min = 1.0 / classes.max(1) as f64 * (1.0 + 1e-6);
    let max = 1.0 - 0.5 / (isotonic.n() as f64 + 1.0);
    (min, max)
}

/// The maximum number of steps of Newton's method, whose error is squared in each step.
const MAX_STEPS: u32 = 100;
/// The largest β; classes that are equally likely stay so at any β.
pub const MAX_SHARPNESS: f64 = 1e6;

/// Finds the β at which softmax(β·row) gives the predicted class its calibrated confidence.
///
/// The confidence stays within its [limits](confidence_limits).
fn sharpness(row: &[f32], isotonic: &Isotonic) -> f64 {
    let (min, max) = confidence_limits(isotonic, row.len());
    let target = isotonic.confidence(row).max(min).min(max);
    let predicted = argmax(row);
    let top = f64::from(lanes::max(row));
    let log_odds = libm::log(target / (1.0 - target));
    let mut beta = 0.0;
    // The logarithm of the other classes' mass is convex and decreasing in β, so Newton's steps from zero never overshoot.
    for _ in 0..MAX_STEPS {
        let mut mass = 0.0;
        let mut slope = 0.0;
        for (class, &z) in row.iter().enumerate() {
            if class != predicted {
                let below = f64::from(z) - top;
                let e = libm::exp(beta * below);
                mass += e;
                slope -= e * below;
            }
        }
        let next = (beta + (libm::log(mass) + log_odds) * mass / slope).min(MAX_SHARPNESS);
        // NaN if there is no other class, or none that is less likely.
        if next.is_nan() || next - beta <= f64::EPSILON * beta {
            break;
        }
        beta = next;
    }
    if beta > 0.0 { beta } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::TopLabel;
    use calmix_core::rng::{Domain, Seed};

    /// Logits of three classes, over-confident by a factor of `heat`, with labels drawn from the logits before.
    fn drawn(n: usize, heat: f32) -> (Vec<f32>, Vec<u32>) {
        let mut stream = Seed(5).stream(Domain::Split, 0, 0);
        let mut logits = Vec::new();
        let mut labels = Vec::new();
        for _ in 0..n {
            let row: Vec<f32> = (0..3).map(|_| 2.0 * stream.normal() as f32).collect();
            let mut p = [0.0; 3];
            Temperature::IDENTITY.probabilities_into(&row, &mut p);
            let u = stream.uniform() as f32;
            labels.push(if u < p[0] {
                0
            } else if u < p[0] + p[1] {
                1
            } else {
                2
            });
            logits.extend(row.iter().map(|z| heat * z));
        }
        (logits, labels)
    }

    #[test]
    fn every_kind_undoes_a_factor() {
        let (logits, labels) = drawn(3_000, 3.0);
        let logits = Matrix::new(&logits, 3_000, 3).unwrap();
        let gap = |probabilities: &[f32]| {
            let p = Matrix::new(probabilities, 3_000, 3).unwrap();
            let predictions = TopLabel::from_probabilities(p, &labels).unwrap();
            predictions.confidence().iter().sum::<f64>() / 3_000.0 - predictions.accuracy()
        };
        assert!(gap(&Temperature::IDENTITY.probabilities(logits)) > 0.1);
        for kind in CalibratorKind::ALL {
            let calibrator = Calibrator::fit(kind, logits, &labels, &|| false).unwrap();
            assert_eq!(calibrator.kind(), kind);
            let probabilities = calibrator.probabilities(logits).unwrap();
            // The accuracy of 3,000 rows has a standard error of 0.009.
            assert!(gap(&probabilities).abs() < 0.02, "{kind:?}");
            // The softmax of the calibrated logits, which are f32, is the same.
            let calibrated = calibrator.apply(logits).unwrap();
            let again = Temperature::IDENTITY.probabilities(Matrix::new(&calibrated, 3_000, 3).unwrap());
            assert!(probabilities.iter().zip(&again).all(|(a, b)| (a - b).abs() < 2e-6), "{kind:?}");
            let stored = serde_json::to_string(&calibrator).unwrap();
            assert_eq!(serde_json::from_str::<Calibrator>(&stored).unwrap(), calibrator);
        }
    }

    #[test]
    fn isotonic_keeps_the_predicted_class() {
        let (logits, labels) = drawn(2_000, 2.0);
        let matrix = Matrix::new(&logits, 2_000, 3).unwrap();
        let isotonic = Isotonic::fit_top_label(matrix, &labels).unwrap();
        let calibrator = Calibrator::Isotonic(isotonic.clone());
        let probabilities = calibrator.probabilities(matrix).unwrap();
        for (row, p) in matrix.iter().zip(probabilities.chunks(3)) {
            let predicted = argmax(row);
            assert_eq!(predicted, argmax(p));
            let expected = isotonic.confidence(row).clamp(1.0 / 3.0, 1.0);
            assert!((f64::from(p[predicted]) - expected).abs() < 1e-3, "{expected} {p:?}");
        }
    }

    #[test]
    fn the_largest_logits_stay_finite() {
        for row in [[f32::MAX, f32::MIN, 0.0], [f32::MIN; 3], [0.0, -0.0, f32::MIN_POSITIVE]] {
            let (_, labels) = drawn(9, 1.0);
            let logits = row.repeat(9);
            for kind in CalibratorKind::ALL {
                let calibrator =
                    Calibrator::fit(kind, Matrix::new(&logits, 9, 3).unwrap(), &labels, &|| false).unwrap();
                let mut out = [f32::NAN; 3];
                calibrator.apply_to_row(&row, &mut out).unwrap();
                assert!(out.iter().all(|z| z.is_finite()), "{kind:?} {out:?}");
            }
        }
    }
}
