//! Rows of numbers from Python, in the precision that they come in.

use calmix_core::lanes;
use calmix_core::matrix::{MatrixOf, Scalar};
use numpy::{Element, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::interop::{invalid, matrix};

/// The largest distance of a row's sum from 1, which allows for probabilities in half precision.
pub(crate) const SUM_TOLERANCE: f64 = 1e-3;

/// Rows of numbers in their original type: 0.7 in f64 may be in another bin than 0.7 in f32.
#[derive(FromPyObject)]
pub(crate) enum RowsOf<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl RowsOf<'_> {
    /// Computes from the rows in their own type, without the interpreter. Closures are not generic, so there is one for each
    /// type.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        single: impl FnOnce(MatrixOf<'_, f32>) -> PyResult<R> + Send,
        double: impl FnOnce(MatrixOf<'_, f64>) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        match self {
            Self::Single(rows) => detached(py, rows, single),
            Self::Double(rows) => detached(py, rows, double),
        }
    }
}

fn detached<T: Scalar + Element + Sync, R: Send>(
    py: Python<'_>,
    rows: &PyReadonlyArray2<'_, T>,
    compute: impl FnOnce(MatrixOf<'_, T>) -> PyResult<R> + Send,
) -> PyResult<R> {
    let rows = matrix(rows)?;
    py.detach(|| compute(rows))
}

/// Refuses rows of probabilities that do not sum to 1.
pub(crate) fn check_sums<T: Scalar>(rows: MatrixOf<'_, T>) -> PyResult<()> {
    for (index, row) in rows.iter().enumerate() {
        let sum = lanes::sum(row, Into::into);
        if sum.is_nan() || (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(invalid(format!("row {index} sums to {sum}, not to 1")));
        }
    }
    Ok(())
}

/// Refuses rows that are not probabilities: numbers in [0, 1] whose sum is 1.
pub(crate) fn check_probabilities<T: Scalar>(rows: MatrixOf<'_, T>) -> PyResult<()> {
    let is_outside = |row: &[T]| !row.iter().fold(true, |all, &p| all & p.is_probability());
    match rows.iter().position(is_outside) {
        Some(row) => Err(invalid(format!("row {row} has numbers outside of [0, 1]"))),
        None => check_sums(rows),
    }
}
