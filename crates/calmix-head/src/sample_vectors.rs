//! The rows of vectors that heads are trained on: in memory, or read by the caller if they do not fit there.

use std::fmt::Debug;
use std::ops::Range;

use calmix_core::matrix::Matrix;

use crate::error::HeadError;

/// Rows of numbers, read one by one from several threads. A row is the same every time.
pub trait VectorRows: Debug + Sync {
    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Returns the number of columns.
    fn width(&self) -> usize;

    /// Appends the numbers of a row in a range of columns.
    ///
    /// # Errors
    /// If there is no such row, or it cannot be read.
    fn read(&self, row: usize, columns: Range<usize>, into: &mut Vec<f32>) -> Result<(), HeadError>;

    /// Returns the first row with a number that is not finite, if any.
    fn first_non_finite(&self) -> Option<usize>;
}

/// Rows of numbers, in memory or read by the caller.
#[derive(Debug, Clone, Copy)]
pub enum SampleVectors<'a> {
    /// In memory, one row after the other.
    Memory(Matrix<'a>),
    /// Read by the caller.
    External(&'a dyn VectorRows),
}

impl<'a> From<Matrix<'a>> for SampleVectors<'a> {
    fn from(matrix: Matrix<'a>) -> Self {
        Self::Memory(matrix)
    }
}

impl SampleVectors<'_> {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Memory(matrix) => matrix.rows(),
            Self::External(rows) => rows.rows(),
        }
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        match self {
            Self::Memory(matrix) => matrix.width(),
            Self::External(rows) => rows.width(),
        }
    }

    pub(crate) fn read(
        &self,
        row: usize,
        columns: Range<usize>,
        into: &mut Vec<f32>,
    ) -> Result<(), HeadError> {
        match self {
            Self::Memory(matrix) => {
                let numbers = matrix.row(row).get(columns);
                into.extend_from_slice(numbers.ok_or_else(|| no_row(row))?);
                Ok(())
            }
            Self::External(rows) => rows.read(row, columns, into),
        }
    }

    pub(crate) fn first_non_finite(&self) -> Option<usize> {
        match self {
            Self::Memory(matrix) => {
                matrix.iter().position(|row| row.iter().any(|number| !number.is_finite()))
            }
            Self::External(rows) => rows.first_non_finite(),
        }
    }
}

fn no_row(row: usize) -> HeadError {
    HeadError::Input(format!("there is no row {row}"))
}
