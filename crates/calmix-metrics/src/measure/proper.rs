//! Proper scores, whose expectation is best only for the true probabilities.

use calmix_core::matrix::Matrix;

use super::Counts;
use crate::checked;
use crate::error::MetricsError;
use crate::exponential::negative_log_likelihood;

/// Brier score: `Σ_c (p_c − [label = c])²` per row, averaged over the rows; from 0 to 2.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn brier_score(probabilities: Matrix<'_>, labels: &[u32]) -> Result<f64, MetricsError> {
    Ok(mean(&brier_of_rows(probabilities, labels)?))
}

/// Computes the Brier score of every row, of which [`brier_score`] is the mean.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn brier_of_rows(probabilities: Matrix<'_>, labels: &[u32]) -> Result<Vec<f64>, MetricsError> {
    checked::probabilities(probabilities, labels)?;
    let of_row = |row: &[f32], label: usize| {
        row.iter()
            .enumerate()
            .map(|(class, &p)| {
                let miss = f64::from(p) - f64::from(u8::from(class == label));
                miss * miss
            })
            .sum()
    };
    Ok(rows(probabilities, labels, of_row))
}

/// Negative log-likelihood of softmax(`logits` / `temperature`): the mean of `ln Σ exp(z/T) − z_label/T`.
///
/// Computed in f64 and relative to the largest logit, so that it is accurate for any confidence. Probabilities would need a
/// floor under their logarithm.
///
/// # Errors
/// If there is not one label per row, a label is not a class, a logit is not finite, or the temperature is
/// not positive.
pub fn nll_from_logits(logits: Matrix<'_>, labels: &[u32], temperature: f64) -> Result<f64, MetricsError> {
    Ok(mean(&nll_of_rows(logits, labels, temperature)?))
}

/// Computes the negative log-likelihood of every row, of which [`nll_from_logits`] is the mean.
///
/// # Errors
/// If there is not one label per row, a label is not a class, a logit is not finite, or the temperature is
/// not positive.
pub fn nll_of_rows(logits: Matrix<'_>, labels: &[u32], temperature: f64) -> Result<Vec<f64>, MetricsError> {
    checked::temperature(temperature)?;
    checked::logits(logits, labels)?;
    let of_row = |row: &[f32], label| negative_log_likelihood(row, label, temperature);
    Ok(rows(logits, labels, of_row))
}

/// Labels must have been checked.
fn rows(matrix: Matrix<'_>, labels: &[u32], of_row: impl Fn(&[f32], usize) -> f64) -> Vec<f64> {
    matrix.iter().zip(labels).map(|(row, &label)| of_row(row, label as usize)).collect()
}

fn mean(of_rows: &[f64]) -> f64 {
    Counts::once(of_rows.len()).mean(of_rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brier_score_sums_over_classes() {
        let p = [0.5, 0.25, 0.25, 0.0, 0.0, 1.0];
        let p = Matrix::new(&p, 2, 3).unwrap();
        assert_eq!(brier_score(p, &[0, 2]).unwrap(), 0.375 / 2.0);
        assert_eq!(brier_score(p, &[0, 0]).unwrap(), 1.1875);
    }

    #[test]
    fn logits_need_no_floor() {
        let z = Matrix::new(&[1000.0, 0.0], 1, 2).unwrap();
        assert_eq!(nll_from_logits(z, &[1], 1.0).unwrap(), 1000.0);
        assert_eq!(nll_from_logits(z, &[1], 2.0).unwrap(), 500.0);
        assert_eq!(nll_from_logits(z, &[0], 1.0).unwrap(), 0.0);
    }

    #[test]
    fn nothing_scores_zero() {
        let empty = Matrix::new(&[], 0, 3).unwrap();
        assert_eq!(brier_score(empty, &[]).unwrap(), 0.0);
        assert_eq!(nll_from_logits(empty, &[], 1.0).unwrap(), 0.0);
    }
}
