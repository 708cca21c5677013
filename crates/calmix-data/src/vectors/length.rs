//! The length that a vector may have.

use calmix_core::lanes;

/// The greatest length. Vectors are centred, so two of them are subtracted, and the difference must have a length as an `f32`.
const MAX_LENGTH: f64 = f32::MAX as f64 / 2.0;

/// Why a vector cannot be used, if its numbers are so large that its length is not an `f32`: scaled to unit length, all of
/// them would become zero.
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
