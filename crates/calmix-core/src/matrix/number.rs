//! The two types of numbers that a matrix may have.

/// A floating-point number of a matrix: `f32` or `f64`.
pub trait Number: Copy + PartialOrd + Into<f64> + sealed::Sealed {
    /// −∞.
    const NEG_INFINITY: Self;

    /// Returns the nearest number of this type.
    fn rounded(value: f64) -> Self;

    /// Returns whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// Returns whether it is in [0, 1].
    fn is_probability(self) -> bool;

    /// Returns `self − top` in f64, for finite numbers; the lowest finite f64 if it would be −∞.
    fn below(self, top: Self) -> f64;
}

impl Number for f32 {
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    #[inline]
    fn rounded(value: f64) -> Self {
        value as f32
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
    fn below(self, top: Self) -> f64 {
        f64::from(self) - f64::from(top)
    }
}

impl Number for f64 {
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    #[inline]
    fn rounded(value: f64) -> Self {
        value
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

    #[test]
    fn numbers_are_checked_in_their_own_type() {
        assert!(0.0_f32.is_probability() && 1.0_f64.is_probability());
        assert!(!1.0_f64.next_up().is_probability() && !(-1e-300_f64).is_probability());
        assert!(!Number::is_finite(f64::NAN) && !f32::NAN.is_probability() && Number::is_finite(f64::MAX));
        assert_eq!((f32::rounded(0.7), f64::rounded(0.7)), (0.7_f32, 0.7_f64));
    }
}
