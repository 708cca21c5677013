//! Student's t distribution: tail probabilities and quantiles.
//!
//! The tail is an incomplete beta function, by its continued fraction (Press and others, "Numerical
//! recipes", section 6.4); the quantile inverts it by Newton's method on logarithms. Beyond 10⁵ degrees of
//! freedom the distribution is expanded around the normal (Abramowitz and Stegun 26.7.5).

use super::incomplete_beta::fraction;
use crate::checked;
use crate::error::MetricsError;

const NEARLY_NORMAL: f64 = 1e5;

/// Computes P(T > t) for T with `degrees` of freedom, which need not be whole.
///
/// # Errors
/// If `degrees` is not positive or `t` is NaN.
pub fn upper_tail(t: f64, degrees: f64) -> Result<f64, MetricsError> {
    check_degrees(degrees)?;
    checked::parameter("value of t", t, "a number", |t| !t.is_nan())?;
    let tail = outside(t.abs(), degrees);
    Ok(if t >= 0.0 { tail } else { 1.0 - tail })
}

/// Computes the t that is exceeded with probability `tail` by T with `degrees` of freedom.
///
/// The relative error is at most 1e-11, and smaller for few degrees of freedom. The upper end of a 95% interval is at
/// `tail = 0.025`.
///
/// # Errors
/// If `tail` is not between 0 and 1, or `degrees` is not positive.
///
/// ```
/// use calmix_metrics::stats::student_t::upper_quantile;
/// assert!((upper_quantile(0.025, 10.0)? - 2.228_138_851_986).abs() < 1e-11);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
pub fn upper_quantile(tail: f64, degrees: f64) -> Result<f64, MetricsError> {
    checked::probability("tail", tail)?;
    check_degrees(degrees)?;
    if tail == 0.5 {
        return Ok(0.0);
    }
    let positive = if degrees > NEARLY_NORMAL {
        near_normal(solve(tail, &normal_outside, &normal_within, &normal_density), degrees)
    } else {
        let outside = |t| exact_outside(t, degrees);
        let within = |t| exact_within(t, degrees);
        let density = |t| exact_density(t, degrees);
        solve(tail, &outside, &within, &density)
    };
    Ok(if tail < 0.5 { positive } else { -positive })
}

fn check_degrees(degrees: f64) -> Result<(), MetricsError> {
    checked::parameter("number of degrees of freedom", degrees, "positive", |degrees| degrees > 0.0)
}

/// Finds the t > 0 beyond which min(tail, 1 − tail) lies, for a symmetric distribution.
///
/// In the middle the probability between 0 and t is matched, outside the one beyond t: whichever is small
/// and therefore exact. Both are nearly straight in logarithms, where Newton needs few steps.
fn solve(
    tail: f64,
    outside: &dyn Fn(f64) -> f64,
    within: &dyn Fn(f64) -> f64,
    density: &dyn Fn(f64) -> f64,
) -> f64 {
    let middle = (0.25..=0.75).contains(&tail);
    let target = if middle { (0.5 - tail).abs() } else { tail.min(1.0 - tail) };
    // ln t, from the smallest gap to one half to the largest t of a representable tail.
    let mut low = -745.0_f64;
    let mut high = 709.0_f64;
    let mut s = 0.0_f64;
    for _ in 0..2_000 {
        let t = libm::exp(s);
        let probability = if middle { within(t) } else { outside(t) };
        let error = libm::log(probability / target);
        let too_far = if middle { error > 0.0 } else { error < 0.0 };
        if too_far {
            high = s;
        } else {
            low = s;
        }
        let slope = density(t) * t / probability;
        let newton = if middle { s - error / slope } else { s + error / slope };
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - s).abs() <= 2.0 * f64::EPSILON * s.abs().max(0.5) {
            return libm::exp(next);
        }
        s = next;
    }
    libm::exp(s)
}

/// Computes P(T > t) for t ≥ 0.
fn outside(t: f64, degrees: f64) -> f64 {
    if degrees > NEARLY_NORMAL {
        normal_outside(toward_normal(t, degrees))
    } else {
        exact_outside(t, degrees)
    }
}

fn normal_outside(z: f64) -> f64 {
    0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

fn normal_within(z: f64) -> f64 {
    0.5 * libm::erf(z * std::f64::consts::FRAC_1_SQRT_2)
}

fn normal_density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / std::f64::consts::TAU.sqrt()
}

/// Returns the t of `degrees` of freedom with the same tail as the normal z.
fn near_normal(z: f64, degrees: f64) -> f64 {
    let q = z * z;
    let terms = [
        z * (q + 1.0) / 4.0,
        z * ((5.0 * q + 16.0) * q + 3.0) / 96.0,
        z * (((3.0 * q + 19.0) * q + 17.0) * q - 15.0) / 384.0,
        z * ((((79.0 * q + 776.0) * q + 1482.0) * q - 1920.0) * q - 945.0) / 92160.0,
    ];
    z + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / degrees)
}

/// Returns the normal z with the same tail as t at `degrees` of freedom: the inverse of [`near_normal`].
fn toward_normal(t: f64, degrees: f64) -> f64 {
    // Where the expansion has no meaning the tail is zero in f64 anyway.
    if t > 50.0 {
        return t;
    }
    let mut z = t;
    for _ in 0..8 {
        z -= near_normal(z, degrees) - t;
    }
    z
}

/// Computes P(T > t) for t ≥ 0.
fn exact_outside(t: f64, degrees: f64) -> f64 {
    let (ln_x, x, y) = split(t, degrees);
    half_beta(ln_x, x, y, degrees)
}

/// Computes P(0 < T < t) for t ≥ 0, accurate for small probabilities.
fn exact_within(t: f64, degrees: f64) -> f64 {
    let (ln_x, x, y) = split(t, degrees);
    half_beta_complement(ln_x, x, y, degrees)
}

/// Computes the density at t.
fn exact_density(t: f64, degrees: f64) -> f64 {
    let (ln_x, ..) = split(t, degrees);
    libm::exp(0.5 * (degrees + 1.0) * ln_x + ln_gamma_ratio(0.5 * degrees))
        / (degrees * std::f64::consts::PI).sqrt()
}

/// Computes ln x, x and 1 − x for x = ν/(ν + t²), without cancellation or overflow.
fn split(t: f64, degrees: f64) -> (f64, f64, f64) {
    let r = t / degrees.sqrt();
    let ln_x = if r < 1e8 { -libm::log1p(r * r) } else { -2.0 * libm::log(r) };
    (ln_x, libm::exp(ln_x), -libm::expm1(ln_x))
}

/// Computes ½·I_x(ν/2, ½).
fn half_beta(ln_x: f64, x: f64, y: f64, degrees: f64) -> f64 {
    let a = 0.5 * degrees;
    if x < (a + 1.0) / (a + 2.5) {
        0.5 * front(ln_x, y, a) / a * fraction(a, 0.5, x)
    } else {
        0.5 - half_beta_complement(ln_x, x, y, degrees)
    }
}

/// Computes ½·I_y(½, ν/2) at y = 1 − x; it and [`half_beta`] add up to ½.
fn half_beta_complement(ln_x: f64, x: f64, y: f64, degrees: f64) -> f64 {
    let a = 0.5 * degrees;
    if x < (a + 1.0) / (a + 2.5) {
        0.5 - half_beta(ln_x, x, y, degrees)
    } else {
        front(ln_x, y, a) * fraction(0.5, a, y)
    }
}

/// Computes x^a·y^½ / B(a, ½).
fn front(ln_x: f64, y: f64, a: f64) -> f64 {
    libm::exp(a * ln_x + ln_gamma_ratio(a)) * (y / std::f64::consts::PI).sqrt()
}

/// Computes ln Γ(a + ½) − ln Γ(a), by recurrence up to where the asymptotic series has an error of 1e-15.
fn ln_gamma_ratio(a: f64) -> f64 {
    let mut a = a;
    let mut lifted = 1.0;
    while a < 24.0 {
        lifted *= a / (a + 0.5);
        a += 1.0;
    }
    let r = 1.0 / (a * a);
    let series =
        (-1.0 / 8.0 + r * (1.0 / 192.0 + r * (-1.0 / 640.0 + r * (17.0 / 14336.0 - r * 31.0 / 18432.0)))) / a;
    0.5 * libm::log(a) + series + libm::log(lifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_at_one_and_two_degrees() {
        for tail in [1e-300, 1e-12, 0.001, 0.025, 0.2, 0.3, 0.45, 0.499_999, 0.75, 0.999] {
            let cauchy = if tail < 0.5 { 1.0 } else { -1.0 } / (std::f64::consts::PI * tail).tan().abs();
            let t = upper_quantile(tail, 1.0).unwrap();
            // The tangent itself loses 1e-16 / (0.5 − tail) next to one half.
            assert!((t / cauchy - 1.0).abs() < 1e-9, "{tail} {t} {cauchy}");
            let two = (1.0 - 2.0 * tail) / (2.0 * tail * (1.0 - tail)).sqrt();
            let t = upper_quantile(tail, 2.0).unwrap();
            assert!((t / two - 1.0).abs() < 1e-12, "{tail} {t} {two}");
        }
        assert_eq!(upper_quantile(0.5, 3.0), Ok(0.0));
    }

    #[test]
    fn the_tail_inverts_the_quantile() {
        for degrees in [0.3, 1.0, 2.5, 7.0, 40.0, 1e3, 9.9e4, 1.1e5, 1e9, f64::INFINITY] {
            for tail in [1e-9, 0.01, 0.1, 0.26, 0.4, 0.6, 0.9, 0.999] {
                let t = upper_quantile(tail, degrees).unwrap();
                let back = upper_tail(t, degrees).unwrap();
                // The exponential of ln t loses |ln t| roundings, t² up to forty.
                assert!((back / tail - 1.0).abs() < 1e-11, "{degrees} {tail} {back}");
            }
        }
    }

    #[test]
    fn the_expansion_meets_the_fraction() {
        for tail in [1e-8, 0.005, 0.2, 0.45] {
            let below = upper_quantile(tail, NEARLY_NORMAL).unwrap();
            let above = upper_quantile(tail, NEARLY_NORMAL * (1.0 + 1e-9)).unwrap();
            assert!((below / above - 1.0).abs() < 1e-12, "{tail}: {below} {above}");
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for (tail, degrees) in [(0.0, 1.0), (1.0, 1.0), (f64::NAN, 1.0), (0.1, 0.0), (0.1, f64::NAN)] {
            assert!(upper_quantile(tail, degrees).is_err());
        }
        assert!(upper_tail(f64::NAN, 1.0).is_err());
        assert_eq!(upper_tail(f64::INFINITY, 4.0), Ok(0.0));
        assert_eq!(upper_tail(f64::NEG_INFINITY, 4.0), Ok(1.0));
    }
}
