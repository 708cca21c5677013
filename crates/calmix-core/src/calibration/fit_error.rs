//! Why a calibration map could not be fitted, loaded or applied.

use crate::matrix::Matrix;

/// What is wrong with the data or the parameters of a calibration map.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Nothing to fit on.
    #[error("a calibration map needs at least one sample of positive weight")]
    NoSamples,
    /// Two columns of one table have different lengths.
    #[error("{expected} samples, but {got} {what}")]
    Length {
        /// What there are too few or too many of.
        what: &'static str,
        /// How many samples there are.
        expected: usize,
        /// How many there are of it.
        got: usize,
    },
    /// A label names a class that does not exist.
    #[error("row {row} has label {label}, but there are {classes} classes")]
    Label {
        /// The row.
        row: usize,
        /// Its label.
        label: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// A number is not in the range where it means something.
    #[error("{what} {index} is {value}, which is not {allowed}")]
    Value {
        /// What the number is.
        what: &'static str,
        /// Its position: a row, an index, or zero where there is one only.
        index: usize,
        /// The number.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A map was fitted for another number of classes.
    #[error("the map is for {expected} classes, the rows have {got}")]
    Classes {
        /// Classes of the map.
        expected: usize,
        /// Width of the rows.
        got: usize,
    },
    /// Every fold needs a sample, and so does its complement.
    #[error("{folds} folds of {samples} samples: there must be at least 2 folds and a sample in each")]
    Folds {
        /// Folds asked for.
        folds: usize,
        /// Samples there are.
        samples: usize,
    },
    /// The knots of an isotonic map do not describe a finite non-decreasing function.
    #[error("the knots must strictly increase, their values must not decrease, and both ranges be finite")]
    Knots,
}

/// One label per row, each of an existing class, and only finite numbers.
pub(super) fn check_labelled(rows: Matrix, labels: &[u32], what: &'static str) -> Result<(), FitError> {
    check_length("labels", rows.rows(), labels.len())?;
    for (row, (values, &label)) in rows.iter().zip(labels).enumerate() {
        if label as usize >= values.len() {
            let classes = values.len();
            return Err(FitError::Label { row, label, classes });
        }
        if let Some(&value) = values.iter().find(|z| !z.is_finite()) {
            return Err(not_finite(what, row, f64::from(value)));
        }
    }
    Ok(())
}

pub(super) fn check_length(what: &'static str, expected: usize, got: usize) -> Result<(), FitError> {
    if expected == got { Ok(()) } else { Err(FitError::Length { what, expected, got }) }
}

pub(super) fn not_finite(what: &'static str, index: usize, value: f64) -> FitError {
    FitError::Value { what, index, value, allowed: "finite" }
}
