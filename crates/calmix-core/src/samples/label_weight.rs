//! The weights that labels may have in training.

use std::ops::RangeInclusive;

/// The limits of a weight: sums of weighted numbers then stay far from the limits of `f32`.
pub const LIMITS: RangeInclusive<f64> = 1e-9..=1e9;

/// Returns why a number cannot be the weight of a label; `None` if it can.
pub fn why_not(weight: f64) -> Option<String> {
    if LIMITS.contains(&weight) {
        return None;
    }
    Some(match weight {
        0.0 => "the weight is 0; to train without a label, leave the label out".to_owned(),
        _ => format!("the weight is {weight}, which is not a number from 1e-9 to 1e9"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_numbers_are_weights() {
        assert!([1e-9, 0.5, 1.0, 1e9].iter().all(|&weight| why_not(weight).is_none()));
        assert!(why_not(0.0).unwrap().contains("leave the label out"));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e-10, 2e9] {
            assert!(why_not(wrong).unwrap().contains("from 1e-9 to 1e9"), "{wrong}");
        }
    }
}
