//! The number and size of vectors, and their limits.

use calmix_core::lanes;

use crate::error::FormatProblem;

/// The maximum number of values per row: every model's vectors are far shorter, and a few rows always fit into memory.
pub const MAX_ROW_VALUES: u64 = 1 << 20;

/// The maximum norm. Vectors are centred, so two are subtracted, and the norm of the difference must be an `f32`.
const MAX_LENGTH: f64 = f32::MAX as f64 / 2.0;

/// The shape of all vectors of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorShape {
    pub(crate) rows: u64,
    pub(crate) views: usize,
    pub(crate) width: usize,
}

impl VectorShape {
    /// Derives the shape from the dimensions of an array: rows × width, or rows × views × width.
    pub(crate) fn from_dimensions(dimensions: &[u64]) -> Result<Self, FormatProblem> {
        match *dimensions {
            [rows, width] => Self::new(rows, 1, width),
            [rows, views, width] => Self::new(rows, views, width),
            _ => {
                let problem = format!(
                    "the array has {} dimensions; expected samples × numbers, or samples × views × numbers",
                    dimensions.len()
                );
                Err(FormatProblem::Content(problem))
            }
        }
    }

    pub(crate) fn new(rows: u64, views: u64, width: u64) -> Result<Self, FormatProblem> {
        if rows == 0 || views == 0 || width == 0 {
            return Err(FormatProblem::Content("there are no vectors in it".into()));
        }
        match views.checked_mul(width) {
            Some(numbers) if numbers <= MAX_ROW_VALUES => {
                Ok(Self { rows, views: views as usize, width: width as usize })
            }
            _ => {
                let problem = format!("{views} × {width} numbers per row, expected at most {MAX_ROW_VALUES}");
                Err(FormatProblem::Limit(problem))
            }
        }
    }

    /// Returns the number of values per row.
    pub(crate) fn numbers(self) -> usize {
        self.views * self.width
    }

    /// Returns the size of all rows as `f32`, in bytes.
    pub(crate) fn unpacked_bytes(self) -> u64 {
        self.rows.saturating_mul(4 * self.numbers() as u64)
    }
}

/// Returns why a vector cannot be used if its norm exceeds the range of `f32`: scaled to unit norm, all its values would
/// become zero.
pub fn too_long(vector: &[f32]) -> Option<String> {
    let squares = lanes::sum(vector, |number| f64::from(number) * f64::from(number));
    let length = squares.sqrt();
    (length > MAX_LENGTH)
        .then(|| format!("the length of its vector is {length:.1e}, expected at most {MAX_LENGTH:.1e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_huge_vectors_are_too_long() {
        assert!(too_long(&[1e38, -1e38]).is_none());
        assert!(too_long(&[]).is_none());
        let problem = too_long(&[f32::MAX, f32::MIN]).unwrap();
        assert_eq!(problem, "the length of its vector is 4.8e38, expected at most 1.7e38");
    }
}
