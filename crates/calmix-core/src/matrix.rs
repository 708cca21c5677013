//! A borrowed row-major matrix.

pub mod number;

use crate::error::CoreError;
use std::ops::Range;

/// A view of `rows × width` numbers of type `T`, one row after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixOf<'a, T> {
    data: &'a [T],
    rows: usize,
    width: usize,
}

/// A matrix of f32, as networks produce them.
pub type Matrix<'a> = MatrixOf<'a, f32>;

impl<'a, T> MatrixOf<'a, T> {
    /// Views `data` as `rows` rows of `width` numbers.
    ///
    /// # Errors
    /// If `data` does not have exactly `rows · width` numbers.
    pub fn new(data: &'a [T], rows: usize, width: usize) -> Result<Self, CoreError> {
        if rows.checked_mul(width) == Some(data.len()) {
            Ok(Self { data, rows, width })
        } else {
            Err(CoreError::Shape { rows, width, got: data.len() })
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the length of each row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns all numbers, row by row.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Returns row `i`; empty if there is no such row.
    pub fn row(&self, i: usize) -> &'a [T] {
        if i < self.rows { &self.data[i * self.width..(i + 1) * self.width] } else { &[] }
    }

    /// Returns some of the rows; `None` if any of them does not exist.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Self {
        let Self { data, width, .. } = *self;
        let within = rows.start <= rows.end && rows.end <= self.rows;
        let rows = if within { rows } else { 0..0 };
        Self { data: &data[rows.start * width..rows.end * width], rows: rows.len(), width }
    }

    /// Iterates over the rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [T]> + Clone + use<'a, T> {
        let Self { data, rows, width } = *self;
        (0..rows).map(move |i| &data[i * width..(i + 1) * width])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_knows_its_shape() {
        let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let m = Matrix::new(&data, 2, 3).unwrap();
        assert_eq!(m.row(1), [4.0, 5.0, 6.0]);
        assert_eq!(m.iter().map(<[f32]>::len).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(Matrix::new(&[], 4, 0).unwrap().iter().len(), 4);
        assert_eq!((m.range(1..2).row(0), m.range(1..3).rows()), (m.row(1), 0));
        assert_eq!(Matrix::new(&data, 4, 2).unwrap_err().to_string(), "4 rows of 2 need 8 numbers, got 6");
        assert!(Matrix::new(&data, usize::MAX, 2).is_err());
    }
}
