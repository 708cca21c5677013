//! Labels from Python.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error::invalid;

/// The class of each label.
///
/// # Errors
/// If one of them is negative, or too large for a class.
pub(crate) fn classes_of(labels: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u32>> {
    let class = |(row, &label): (usize, &i64)| {
        u32::try_from(label).map_err(|_| invalid(format!("row {row}: {label} is not a class")))
    };
    labels.as_slice()?.iter().enumerate().map(class).collect()
}
