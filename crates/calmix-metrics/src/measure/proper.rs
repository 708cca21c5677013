//! Proper scores, whose expectation is best only for the true probabilities.

use calmix_core::lanes;
use calmix_core::matrix::{MatrixOf, Scalar};

use super::Counts;
use crate::checked;
use crate::error::MetricsError;
use crate::exponential::negative_log_likelihood;

/// Computes the Brier score: `Σ_c (p_c − [label = c])²` per row, averaged over the rows; from 0 to 2.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn brier_score<T: Scalar>(probabilities: MatrixOf<'_, T>, labels: &[u32]) -> Result<f64, MetricsError> {
    Ok(mean(&brier_of_rows(probabilities, labels)?))
}

/// Computes the Brier score of every row, of which [`brier_score`] is the mean.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn brier_of_rows<T: Scalar>(
    probabilities: MatrixOf<'_, T>,
    labels: &[u32],
) -> Result<Vec<f64>, MetricsError> {
    let square = |p: T| -> f64 { p.into() * p.into() };
    let of_row = |row: &[T], label: usize| {
        let label_p: f64 = row[label].into();
        let others = lanes::sum(&row[..label], square) + lanes::sum(&row[label + 1..], square);
        others + (label_p - 1.0) * (label_p - 1.0)
    };
    rows(probabilities, labels, checked::probability_row, of_row)
}

/// Computes the negative log-likelihood of softmax(`logits` / `temperature`): the mean of `ln Σ exp(z/T) − z_label/T`.
///
/// Computed in f64 and relative to the largest logit, so that it is accurate for any confidence. Probabilities would need a floor
/// under their logarithm.
///
/// # Errors
/// If there is not one label per row, a label is not a class, a logit is not finite, or the temperature is not positive.
pub fn nll_from_logits<T: Scalar>(
    logits: MatrixOf<'_, T>,
    labels: &[u32],
    temperature: f64,
) -> Result<f64, MetricsError> {
    Ok(mean(&nll_of_rows(logits, labels, temperature)?))
}

/// Computes the negative log-likelihood of every row, of which [`nll_from_logits`] is the mean.
///
/// # Errors
/// If there is not one label per row, a label is not a class, a logit is not finite, or the temperature is
/// not positive.
pub fn nll_of_rows<T: Scalar>(
    logits: MatrixOf<'_, T>,
    labels: &[u32],
    temperature: f64,
) -> Result<Vec<f64>, MetricsError> {
    checked::temperature(temperature)?;
    let of_row = |row: &[T], label| negative_log_likelihood(row, label, temperature);
    rows(logits, labels, checked::logit_row, of_row)
}

/// Computes the mean of −ln of the probability of each label. Infinite if a label has probability zero: the logarithm has no
/// floor. If there are logits, [`nll_from_logits`] is more accurate.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn nll_from_probabilities<T: Scalar>(
    probabilities: MatrixOf<'_, T>,
    labels: &[u32],
) -> Result<f64, MetricsError> {
    Ok(mean(&nll_of_probability_rows(probabilities, labels)?))
}

/// Computes −ln of the probability of every label, of which [`nll_from_probabilities`] is the mean.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn nll_of_probability_rows<T: Scalar>(
    probabilities: MatrixOf<'_, T>,
    labels: &[u32],
) -> Result<Vec<f64>, MetricsError> {
    // 0 − ln 1 is +0, whereas −ln 1 would be −0.
    let of_row = |row: &[T], label: usize| 0.0 - libm::log(row[label].into());
    rows(probabilities, labels, checked::probability_row, of_row)
}

/// Scores all rows, each of which is checked first.
fn rows<T: Scalar>(
    matrix: MatrixOf<'_, T>,
    labels: &[u32],
    check: impl Fn(usize, &[T]) -> Result<(), MetricsError>,
    of_row: impl Fn(&[T], usize) -> f64,
) -> Result<Vec<f64>, MetricsError> {
    checked::labels(matrix, labels)?;
    let rows = matrix.iter().zip(labels).enumerate();
    rows.map(|(index, (row, &label))| check(index, row).map(|()| of_row(row, label as usize))).collect()
}

fn mean(of_rows: &[f64]) -> f64 {
    Counts::once(of_rows.len()).mean(of_rows)
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;

    use super::*;

    #[test]
    fn likelihood_of_probabilities_has_no_floor() {
        let p = MatrixOf::new(&[0.7, 0.3, 1.0, 0.0], 2, 2).unwrap();
        assert!((nll_from_probabilities(p, &[0, 0]).unwrap() + 0.5 * libm::log(0.7)).abs() < 1e-16);
        assert_eq!(nll_of_probability_rows(p, &[0, 0]).unwrap()[1].to_bits(), 0);
        assert_eq!(nll_from_probabilities(p, &[0, 1]).unwrap(), f64::INFINITY);
    }

    #[test]
    fn brier_score_sums_over_classes() {
        let p = [0.5, 0.25, 0.25, 0.0, 0.0, 1.0];
        let p = Matrix::new(&p, 2, 3).unwrap();
        assert_eq!(brier_score(p, &[0, 2]).unwrap(), 0.375 / 2.0);
        assert_eq!(brier_score(p, &[0, 0]).unwrap(), 1.1875);
    }

    #[test]
    fn nll_of_logits_has_no_floor() {
        let z = Matrix::new(&[1000.0, 0.0], 1, 2).unwrap();
        assert_eq!(nll_from_logits(z, &[1], 1.0).unwrap(), 1000.0);
        assert_eq!(nll_from_logits(z, &[1], 2.0).unwrap(), 500.0);
        assert_eq!(nll_from_logits(z, &[0], 1.0).unwrap(), 0.0);
    }
}
