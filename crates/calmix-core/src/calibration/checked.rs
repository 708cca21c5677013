//! What a matrix of predictions must satisfy before it is measured.

use super::CalibrationError;
use crate::matrix::Matrix;

/// One label per row, each of them a class.
fn labels(matrix: Matrix<'_>, labels: &[u32]) -> Result<(), CalibrationError> {
    if matrix.rows() != labels.len() {
        return Err(CalibrationError::Lengths { predictions: matrix.rows(), answers: labels.len() });
    }
    let classes = matrix.width();
    match labels.iter().position(|&label| label as usize >= classes) {
        Some(row) => Err(CalibrationError::Label { row, label: labels[row], classes }),
        None => Ok(()),
    }
}

/// Where the first number that is not `valid` stands: row, class, value.
fn first_invalid(matrix: Matrix<'_>, valid: impl Fn(f32) -> bool) -> Option<(usize, usize, f32)> {
    let at = matrix.data().iter().position(|&value| !valid(value))?;
    Some((at / matrix.width(), at % matrix.width(), matrix.data()[at]))
}

/// Probabilities in [0, 1] with their labels. Rows need not sum to one exactly: f32 does not let them.
pub(super) fn probabilities(matrix: Matrix<'_>, truth: &[u32]) -> Result<(), CalibrationError> {
    labels(matrix, truth)?;
    match first_invalid(matrix, |p| (0.0..=1.0).contains(&p)) {
        Some((row, class, value)) => Err(CalibrationError::Probability { row, class, value }),
        None => Ok(()),
    }
}

/// Finite logits with their labels, and the temperature that divides them.
pub(super) fn logits(matrix: Matrix<'_>, truth: &[u32], temperature: f64) -> Result<(), CalibrationError> {
    labels(matrix, truth)?;
    if !(temperature > 0.0 && temperature.is_finite()) {
        return Err(CalibrationError::Temperature(temperature));
    }
    match first_invalid(matrix, f32::is_finite) {
        Some((row, class, value)) => Err(CalibrationError::Logit { row, class, value }),
        None => Ok(()),
    }
}
