//! The two types of numbers that a matrix may have.

/// A floating-point number of a matrix: `f32` or `f64`.
pub trait Number: Copy + PartialOrd + Into<f64> + sealed::Sealed {
    /// −∞.
    const NEG_INFINITY: Self;

    /// Returns `self − top` in f64, for finite numbers; the lowest finite f64 if it would be −∞.
    fn below(self, top: Self) -> f64;
}

impl Number for f32 {
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    #[inline]
    fn below(self, top: Self) -> f64 {
        f64::from(self) - f64::from(top)
    }
}

impl Number for f64 {
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    #[inline]
    fn below(self, top: Self) -> f64 {
        // An infinite difference times a probability of zero would not be a number.
        (self - top).max(Self::MIN)
    }
}

mod sealed {
    /// Keeps the trait to the two types below.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_stay_finite() {
        assert_eq!(f32::MIN.below(f32::MAX), -2.0 * f64::from(f32::MAX));
        assert_eq!(f64::MIN.below(f64::MAX), f64::MIN);
        assert_eq!(1.0_f64.below(3.0), -2.0);
    }
}
