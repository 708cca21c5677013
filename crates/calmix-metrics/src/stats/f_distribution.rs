//! The F distribution: the ratio of two variances.

use super::incomplete_beta::regularised;
use crate::checked;
use crate::error::MetricsError;

/// Computes P(F > f) for F with `numerator` and `denominator` degrees of freedom, which need not be whole.
///
/// # Errors
/// If a number of degrees is not positive, or `f` is NaN.
pub fn upper_tail(f: f64, numerator: f64, denominator: f64) -> Result<f64, MetricsError> {
    for degrees in [numerator, denominator] {
        checked::parameter("number of degrees of freedom", degrees, "positive", |degrees| degrees > 0.0)?;
    }
    checked::parameter("value of F", f, "a number", |f| !f.is_nan())?;
    if f <= 0.0 {
        return Ok(1.0);
    }
    let share = denominator / (denominator + numerator * f);
    Ok(regularised(denominator / 2.0, numerator / 2.0, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scipy.stats.f.sf (1.16).
    #[test]
    fn tail_is_that_of_scipy() {
        for (f, numerator, denominator, expected) in [
            (1.0, 1.0, 1.0, 0.5),
            (2.5, 64.0, 936.0, 3.459_691_856e-9),
            (1.5, 64.0, 936.0, 0.008_066_178_56),
            (3.0, 9.0, 40.0, 0.007_911_427_169),
        ] {
            let found = upper_tail(f, numerator, denominator).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{f} {numerator} {denominator}: {found:e}");
        }
        assert_eq!(upper_tail(-1.0, 2.0, 2.0).unwrap(), 1.0);
        assert!(upper_tail(f64::NAN, 2.0, 2.0).is_err() && upper_tail(1.0, 0.0, 2.0).is_err());
    }
}
