//! A borrowed row-major matrix of f32 or f64.

pub mod cholesky;

use std::ops::Range;

use crate::error::CoreError;

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

/// The element type of a matrix: `f32` or `f64`.
pub trait Scalar: Copy + PartialOrd + Into<f64> + sealed::Sealed {
    /// −∞.
    const NEG_INFINITY: Self;

    /// Rounds to the nearest number of this type.
    fn from_f64(value: f64) -> Self;

    /// Returns whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// Returns whether it is in [0, 1].
    fn is_probability(self) -> bool;

    /// Computes `self − other` in f64, for finite numbers; the lowest finite f64 if it would be −∞.
    fn minus(self, other: Self) -> f64;
}

macro_rules! scalar {
    ($type:ty, $from_f64:expr, $minus:expr) => {
        impl sealed::Sealed for $type {}

        impl Scalar for $type {
            const NEG_INFINITY: Self = Self::NEG_INFINITY;

            #[inline]
            fn from_f64(value: f64) -> Self {
                let from_f64: fn(f64) -> Self = $from_f64;
                from_f64(value)
            }

            #[inline]
            fn is_finite(self) -> bool {
                self.is_finite()
            }

            #[inline]
            fn is_probability(self) -> bool {
                (0.0..=1.0).contains(&self)
            }

            #[inline]
            fn minus(self, other: Self) -> f64 {
                let minus: fn(Self, Self) -> f64 = $minus;
                minus(self, other)
            }
        }
    };
}

scalar!(f32, |value| value as f32, |a, b| f64::from(a) - f64::from(b));
// An infinite difference times a probability of zero would not be a number.
scalar!(f64, |value| value, |a, b| (a - b).max(f64::MIN));

mod sealed {
    /// Limits [`Scalar`](super::Scalar) to `f32` and `f64`.
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_match_the_shape() {
        let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let m = Matrix::new(&data, 2, 3).unwrap();
        assert_eq!(m.row(1), [4.0, 5.0, 6.0]);
        assert_eq!(m.iter().map(<[f32]>::len).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(Matrix::new(&[], 4, 0).unwrap().iter().len(), 4);
        assert_eq!((m.range(1..2).row(0), m.range(1..3).rows()), (m.row(1), 0));
        assert_eq!(Matrix::new(&data, 4, 2).unwrap_err().to_string(), "4 rows of 2 need 8 numbers, got 6");
        assert!(Matrix::new(&data, usize::MAX, 2).is_err());
    }

    #[test]
    fn differences_stay_finite() {
        assert_eq!(f32::MIN.minus(f32::MAX), -2.0 * f64::from(f32::MAX));
        assert_eq!(f64::MIN.minus(f64::MAX), f64::MIN);
        assert_eq!(1.0_f64.minus(3.0), -2.0);
    }

    #[test]
    fn scalars_are_checked_in_their_type() {
        assert!(0.0_f32.is_probability() && 1.0_f64.is_probability());
        assert!(!1.0_f64.next_up().is_probability() && !(-1e-300_f64).is_probability());
        assert!(!Scalar::is_finite(f64::NAN) && !f32::NAN.is_probability() && Scalar::is_finite(f64::MAX));
        assert_eq!((f32::from_f64(0.7), f64::from_f64(0.7)), (0.7_f32, 0.7_f64));
    }
}
