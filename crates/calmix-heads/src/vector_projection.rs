//! The projection of vectors to those of a head: which samples it is fitted on, and how rows pass through it.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_head::projection::Projection;

use crate::error::HeadsError;

/// The most samples that a projection is fitted on.
pub(crate) const FITTED: usize = 20_000;
/// Rows that are projected at once: of fewer, preparing the directions for the product would take as long as the product.
pub const ROWS: usize = 2_048;

/// The distance between the samples that a projection is fitted on: evenly spaced, if there are more than needed.
pub fn fitted_stride(samples: usize) -> usize {
    samples.div_ceil(FITTED).max(1)
}

/// Fits a projection to rows of `width` numbers, and keeps the given number of dimensions; 0 for all.
///
/// # Errors
/// If there are no rows, or a number is not finite; [`HeadsError::Stopped`] if `stop` becomes true.
pub fn fit_projection(
    rows: &[f32],
    width: usize,
    dimensions: usize,
    stop: &AtomicBool,
) -> Result<Projection, HeadsError> {
    Ok(Projection::fit_unless(matrix(rows, width)?, dimensions, stop)?)
}

/// Adds the projections of rows, which should be as many as [`ROWS`].
///
/// # Errors
/// If the rows are not of the projection's width.
pub fn project(projection: &Projection, rows: &[f32], into: &mut Vec<f32>) -> Result<(), HeadsError> {
    into.extend(projection.apply(matrix(rows, projection.width())?)?);
    Ok(())
}

fn matrix(numbers: &[f32], width: usize) -> Result<Matrix<'_>, HeadsError> {
    Ok(Matrix::new(numbers, numbers.len() / width.max(1), width)?)
}
