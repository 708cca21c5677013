//! Checks of predictions before they are measured, and of calibrators before they are fitted or used.

use calmix_core::matrix::{Matrix, MatrixOf, Scalar};

use crate::error::MetricsError;

/// Checks the number of `what`.
pub(super) fn length(what: &'static str, expected: usize, got: usize) -> Result<(), MetricsError> {
    if expected == got { Ok(()) } else { Err(MetricsError::Length { what, expected, got }) }
}

/// Views `data` as a matrix of `what`.
pub(super) fn matrix<'a>(
    what: &'static str,
    data: &'a [f32],
    rows: usize,
    width: usize,
) -> Result<Matrix<'a>, MetricsError> {
    let length = |_| MetricsError::Length { what, expected: rows.saturating_mul(width), got: data.len() };
    Matrix::new(data, rows, width).map_err(length)
}

/// Checks finite logits with their labels, of which a fit needs at least one.
pub(super) fn fit_rows<T: Scalar>(matrix: MatrixOf<'_, T>, truth: &[u32]) -> Result<(), MetricsError> {
    logits(matrix, truth)?;
    if truth.is_empty() { Err(MetricsError::NoSamples) } else { Ok(()) }
}

/// Checks that there is one label per row, each a valid class.
pub(super) fn labels<T: Scalar>(matrix: MatrixOf<'_, T>, labels: &[u32]) -> Result<(), MetricsError> {
    length("labels", matrix.rows(), labels.len())?;
    let classes = matrix.width();
    match labels.iter().position(|&label| label as usize >= classes) {
        Some(row) => Err(MetricsError::Label { row, label: labels[row], classes }),
        None => Ok(()),
    }
}

/// Checks probabilities in [0, 1] and their labels. Rows need not sum to one exactly, because of the rounding of f32.
pub(super) fn probabilities<T: Scalar>(matrix: MatrixOf<'_, T>, truth: &[u32]) -> Result<(), MetricsError> {
    labels(matrix, truth)?;
    matrix.iter().enumerate().try_for_each(|(index, row)| probability_row(index, row))
}

/// Checks that logits are finite, and their labels.
pub(super) fn logits<T: Scalar>(matrix: MatrixOf<'_, T>, truth: &[u32]) -> Result<(), MetricsError> {
    labels(matrix, truth)?;
    matrix.iter().enumerate().try_for_each(|(index, row)| logit_row(index, row))
}

/// Checks that the probabilities of one row are in [0, 1]. A measure that checks each row just before it reads it passes over the
/// memory once.
#[inline]
pub(super) fn probability_row<T: Scalar>(index: usize, row: &[T]) -> Result<(), MetricsError> {
    entries("probability", index, row, "in [0, 1]", T::is_probability)
}

/// Checks that the logits of one row are finite.
#[inline]
pub(super) fn logit_row<T: Scalar>(index: usize, row: &[T]) -> Result<(), MetricsError> {
    entries("logit", index, row, "finite", T::is_finite)
}

#[inline]
fn entries<T: Scalar>(
    what: &'static str,
    index: usize,
    row: &[T],
    allowed: &'static str,
    valid: impl Fn(T) -> bool,
) -> Result<(), MetricsError> {
    // No early exit: vector units are fastest on a plain pass. The invalid entry is searched for only if there is one.
    if row.iter().fold(true, |all, &value| all & valid(value)) {
        return Ok(());
    }
    let class = row.iter().position(|&value| !valid(value)).unwrap_or(0);
    Err(MetricsError::Entry { what, row: index, class, value: row[class].into(), allowed })
}

/// Checks that the numbers of a column are finite.
pub(super) fn finite(what: &'static str, numbers: &[f64]) -> Result<(), MetricsError> {
    values(what, numbers, "finite", f64::is_finite)
}

/// Checks that the numbers of a column are all `valid`.
pub(super) fn values(
    what: &'static str,
    numbers: &[f64],
    allowed: &'static str,
    valid: impl Fn(f64) -> bool,
) -> Result<(), MetricsError> {
    match numbers.iter().position(|&value| !valid(value)) {
        Some(index) => Err(MetricsError::Value { what, index, value: numbers[index], allowed }),
        None => Ok(()),
    }
}

/// Checks that a single number is `valid`.
pub(super) fn parameter(
    what: &'static str,
    value: f64,
    allowed: &'static str,
    valid: impl Fn(f64) -> bool,
) -> Result<(), MetricsError> {
    if valid(value) { Ok(()) } else { Err(MetricsError::Parameter { what, value, allowed }) }
}

/// Checks a level or a probability: a number between zero and one, both excluded.
pub(super) fn probability(what: &'static str, value: f64) -> Result<(), MetricsError> {
    parameter(what, value, "between 0 and 1", |value| value > 0.0 && value < 1.0)
}

/// Checks a temperature: a positive, finite number.
pub(super) fn temperature(value: f64) -> Result<(), MetricsError> {
    parameter("temperature", value, "positive and finite", |t| t > 0.0 && t.is_finite())
}

/// Fails if the caller wants the fit to stop.
pub(crate) fn not_stopped(stop: &dyn Fn() -> bool) -> Result<(), MetricsError> {
    if stop() { Err(MetricsError::Stopped) } else { Ok(()) }
}
