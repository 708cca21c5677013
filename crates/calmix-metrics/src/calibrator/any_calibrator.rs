//! A calibrator of any kind, with one interface to fit, apply and store it.
//!
//! A temperature works with any number of labels. Vector scaling has two parameters per class and isotonic regression as many
//! as the labels require, so they need more labels ([`CalibratorKind::least_labels`]).

use calmix_core::lanes;
use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use super::isotonic::Isotonic;
use super::temperature::Temperature;
use super::vector::{DEFAULT_L2, VectorScaling};
use crate::abstention::log_odds;
use crate::checked;
use crate::error::MetricsError;

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
    pub fn least_labels(self) -> usize {
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

    /// Fits a calibrator: a temperature by [`Temperature::fit_cautiously`], vector scaling with its default penalty, or
    /// isotonic regression of the confidence in the predicted class.
    ///
    /// # Errors
    /// If there are no rows, labels and rows do not match, or a logit is not finite.
    pub fn fit(kind: CalibratorKind, logits: Matrix, labels: &[u32]) -> Result<Self, MetricsError> {
        Self::fit_unless(kind, logits, labels, &|| false)
    }

    /// Fits as [`fit`](Self::fit) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`MetricsError::Stopped`].
    pub fn fit_unless(
        kind: CalibratorKind,
        logits: Matrix,
        labels: &[u32],
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        checked::not_stopped(stop)?;
        Ok(match kind {
            CalibratorKind::Temperature => {
                Self::Temperature { temperature: Temperature::fit_cautiously(logits, labels)? }
            }
            CalibratorKind::Vector => {
                Self::Vector(VectorScaling::fit_unless(logits, labels, DEFAULT_L2, stop)?.map)
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
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn answer_score(&self, logits: &[f32]) -> Result<f64, MetricsError> {
        if !self.may_change_labels() {
            return Ok(log_odds(logits));
        }
        let mut mapped = vec![0.0; logits.len()];
        self.apply_to_row(logits, &mut mapped)?;
        Ok(log_odds(&mapped))
    }

    /// Computes the calibrated logits of all rows; their softmax is the calibrated probability.
    ///
    /// # Errors
    /// If the calibrator is for another number of classes.
    pub fn apply(&self, logits: Matrix) -> Result<Vec<f32>, MetricsError> {
        let mut mapped = vec![0.0; logits.data().len()];
        for (row, out) in logits.iter().zip(mapped.chunks_mut(logits.width().max(1))) {
            self.apply_to_row(row, out)?;
        }
        Ok(mapped)
    }

    /// Computes the calibrated probabilities of all rows.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn probabilities(&self, logits: Matrix) -> Result<Vec<f32>, MetricsError> {
        match self {
            Self::Temperature { temperature } => Ok(temperature.probabilities(logits)),
            Self::Vector(map) => map.probabilities(logits),
            Self::Isotonic(_) => {
                let mapped = self.apply(logits)?;
                let wrong = |_| MetricsError::Classes { expected: logits.width(), got: logits.width() };
                let mapped = Matrix::new(&mapped, logits.rows(), logits.width()).map_err(wrong)?;
                Ok(Temperature::IDENTITY.probabilities(mapped))
            }
        }
    }

    /// Writes the calibrated probabilities of a row into `out`, which must have the same length; returns the predicted class.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn probabilities_into(&self, row: &[f32], out: &mut [f32]) -> Result<usize, MetricsError> {
        if let Self::Temperature { temperature } = self {
            checked::length("probabilities", row.len(), out.len())?;
            temperature.probabilities_into(row, out);
            return Ok(argmax(row));
        }
        let mut mapped = vec![0.0; row.len()];
        self.apply_to_row(row, &mut mapped)?;
        Temperature::IDENTITY.probabilities_into(&mapped, out);
        Ok(argmax(if self.may_change_labels() { &mapped } else { row }))
    }

    /// Writes the calibrated logits of a row into `out`, which must have the same length.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_to_row(&self, row: &[f32], out: &mut [f32]) -> Result<(), MetricsError> {
        checked::length("calibrated logits", row.len(), out.len())?;
        match self {
            Self::Temperature { temperature } => divide(row, temperature.value(), out),
            Self::Vector(map) => map.logits_into(row, out)?,
            Self::Isotonic(map) => divide(row, 1.0 / sharpness(row, map), out),
        }
        Ok(())
    }
}

/// Divides the logits of a row; if one would overflow f32, the largest logit is subtracted first.
fn divide(row: &[f32], by: f64, out: &mut [f32]) {
    let top = f64::from(lanes::max(row));
    let keeps = row.iter().all(|z| (f64::from(*z) / by).abs() < f64::from(f32::MAX));
    for (out, &z) in out.iter_mut().zip(row) {
        let mapped = if keeps { f64::from(z) / by } else { (f64::from(z) - top) / by };
        *out = mapped.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
    }
}

/// The lowest and the highest confidence that an isotonic calibrator gives to the predicted class.
///
/// The calibrator returns 0 or 1 where all its labels agree; the confidence is limited to half a label from certainty, which
/// is as much as they support, and is at least 1/C, since the predicted class cannot have less.
pub fn confidence_limits(map: &Isotonic, classes: usize) -> (f64, f64) {
    let least = 1.0 / classes.max(1) as f64 * (1.0 + 1e-6);
    let most = 1.0 - 0.5 / (map.n() as f64 + 1.0);
    (least, most)
}

/// The number of steps of Newton's method, whose error is squared in each step.
const MOST_STEPS: u32 = 100;
/// The largest β: classes that are equally likely stay so at any.
pub const SHARPEST: f64 = 1e6;

/// Finds the β at which softmax(β·row) gives the predicted class its calibrated confidence.
///
/// The confidence stays within its [limits](confidence_limits).
fn sharpness(row: &[f32], map: &Isotonic) -> f64 {
    let (least, most) = confidence_limits(map, row.len());
    let wanted = map.confidence(row).max(least).min(most);
    let winner = argmax(row);
    let top = f64::from(lanes::max(row));
    let log_odds = libm::log(wanted / (1.0 - wanted));
    let mut beta = 0.0;
    // The logarithm of the other classes' mass is convex and decreasing in β, so Newton's steps from zero never overshoot.
    for _ in 0..MOST_STEPS {
        let mut mass = 0.0;
        let mut slope = 0.0;
        for (class, &z) in row.iter().enumerate() {
            if class != winner {
                let below = f64::from(z) - top;
                let e = libm::exp(beta * below);
                mass += e;
                slope -= e * below;
            }
        }
        let next = (beta + (libm::log(mass) + log_odds) * mass / slope).min(SHARPEST);
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

    /// Logits of three classes, too sure by a factor of `heat`, with labels drawn from what they say.
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
    fn every_kind_undoes_a_factor_and_comes_back_from_its_file() {
        let (logits, labels) = drawn(3_000, 3.0);
        let logits = Matrix::new(&logits, 3_000, 3).unwrap();
        let gap = |probabilities: &[f32]| {
            let p = Matrix::new(probabilities, 3_000, 3).unwrap();
            let predictions = TopLabel::from_probabilities(p, &labels).unwrap();
            predictions.confidence().iter().sum::<f64>() / 3_000.0 - predictions.accuracy()
        };
        assert!(gap(&Temperature::IDENTITY.probabilities(logits)) > 0.1);
        for kind in CalibratorKind::ALL {
            let map = Calibrator::fit(kind, logits, &labels).unwrap();
            assert_eq!(map.kind(), kind);
            let probabilities = map.probabilities(logits).unwrap();
            // The accuracy of 3,000 rows has a standard error of 0.009.
            assert!(gap(&probabilities).abs() < 0.02, "{kind:?}");
            // The softmax of the mapped logits, which are f32, is the same.
            let mapped = map.apply(logits).unwrap();
            let again = Temperature::IDENTITY.probabilities(Matrix::new(&mapped, 3_000, 3).unwrap());
            assert!(probabilities.iter().zip(&again).all(|(a, b)| (a - b).abs() < 2e-6), "{kind:?}");
            let stored = serde_json::to_string(&map).unwrap();
            assert_eq!(serde_json::from_str::<Calibrator>(&stored).unwrap(), map);
        }
    }

    #[test]
    fn an_isotonic_map_keeps_the_winner_and_says_what_it_was_taught() {
        let (logits, labels) = drawn(2_000, 2.0);
        let matrix = Matrix::new(&logits, 2_000, 3).unwrap();
        let isotonic = Isotonic::fit_top_label(matrix, &labels).unwrap();
        let map = Calibrator::Isotonic(isotonic.clone());
        let probabilities = map.probabilities(matrix).unwrap();
        for (row, p) in matrix.iter().zip(probabilities.chunks(3)) {
            let winner = argmax(row);
            assert_eq!(winner, argmax(p));
            let wanted = isotonic.confidence(row).clamp(1.0 / 3.0, 1.0);
            assert!((f64::from(p[winner]) - wanted).abs() < 1e-3, "{wanted} {p:?}");
        }
    }

    #[test]
    fn the_largest_logits_stay_finite() {
        for row in [[f32::MAX, f32::MIN, 0.0], [f32::MIN; 3], [0.0, -0.0, f32::MIN_POSITIVE]] {
            let (_, labels) = drawn(9, 1.0);
            let logits = row.repeat(9);
            for kind in CalibratorKind::ALL {
                let map = Calibrator::fit(kind, Matrix::new(&logits, 9, 3).unwrap(), &labels).unwrap();
                let mut out = [f32::NAN; 3];
                map.apply_to_row(&row, &mut out).unwrap();
                assert!(out.iter().all(|z| z.is_finite()), "{kind:?} {out:?}");
            }
        }
    }
}
