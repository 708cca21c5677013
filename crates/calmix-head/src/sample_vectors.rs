//! The rows of vectors that heads are trained on: in memory, or wherever a caller keeps more than fit there.

use std::fmt::Debug;
use std::ops::Range;

use calmix_core::matrix::Matrix;

use crate::error::HeadError;

/// Rows of numbers that are read one by one, from several threads. A row is the same every time.
pub trait VectorRows: Debug + Sync {
    /// The number of rows.
    fn rows(&self) -> usize;

    /// The numbers of a row.
    fn width(&self) -> usize;

    /// Appends some numbers of a row.
    ///
    /// # Errors
    /// If there is no such row, or it cannot be read.
    fn read(&self, row: usize, columns: Range<usize>, into: &mut Vec<f32>) -> Result<(), HeadError>;

    /// The first row with a number that is infinite or not a number; `None` if all are finite.
    fn first_infinite(&self) -> Option<usize>;
}

/// Rows of numbers, in memory or elsewhere.
#[derive(Debug, Clone, Copy)]
pub enum SampleVectors<'a> {
    /// In memory, one row after the other.
    Memory(Matrix<'a>),
    /// Wherever the caller keeps them.
    Elsewhere(&'a dyn VectorRows),
}

impl<'a> From<Matrix<'a>> for SampleVectors<'a> {
    fn from(matrix: Matrix<'a>) -> Self {
        Self::Memory(matrix)
    }
}

impl SampleVectors<'_> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Memory(matrix) => matrix.rows(),
            Self::Elsewhere(rows) => rows.rows(),
        }
    }

    /// The numbers of a row.
    pub fn width(&self) -> usize {
        match self {
            Self::Memory(matrix) => matrix.width(),
            Self::Elsewhere(rows) => rows.width(),
        }
    }

    /// Appends some numbers of a row.
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
            Self::Elsewhere(rows) => rows.read(row, columns, into),
        }
    }

    pub(crate) fn first_infinite(&self) -> Option<usize> {
        match self {
            Self::Memory(matrix) => {
                matrix.iter().position(|row| row.iter().any(|number| !number.is_finite()))
            }
            Self::Elsewhere(rows) => rows.first_infinite(),
        }
    }
}

fn no_row(row: usize) -> HeadError {
    HeadError::Input(format!("there is no row {row}"))
}
