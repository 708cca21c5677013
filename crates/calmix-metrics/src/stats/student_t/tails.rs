//! The tails of Student's t as the regularised incomplete beta function I, for any degrees of freedom ν.

use crate::stats::incomplete_beta::fraction;

/// P(T > t), t ≥ 0.
pub(super) fn outside(t: f64, degrees: f64) -> f64 {
    let (ln_x, x, y) = split(t, degrees);
    half_beta(ln_x, x, y, degrees)
}

/// P(0 < T < t), t ≥ 0, with small numbers kept exact.
pub(super) fn within(t: f64, degrees: f64) -> f64 {
    let (ln_x, x, y) = split(t, degrees);
    half_beta_complement(ln_x, x, y, degrees)
}

/// The density at t.
pub(super) fn density(t: f64, degrees: f64) -> f64 {
    let (ln_x, ..) = split(t, degrees);
    libm::exp(0.5 * (degrees + 1.0) * ln_x + ln_gamma_ratio(0.5 * degrees))
        / (degrees * std::f64::consts::PI).sqrt()
}

/// ln x, x = ν/(ν + t²) and 1 − x, without cancellation or overflow.
fn split(t: f64, degrees: f64) -> (f64, f64, f64) {
    let r = t / degrees.sqrt();
    let ln_x = if r < 1e8 { -libm::log1p(r * r) } else { -2.0 * libm::log(r) };
    (ln_x, libm::exp(ln_x), -libm::expm1(ln_x))
}

/// Half of I at x of (ν/2, ½).
fn half_beta(ln_x: f64, x: f64, y: f64, degrees: f64) -> f64 {
    let a = 0.5 * degrees;
    if x < (a + 1.0) / (a + 2.5) {
        0.5 * front(ln_x, y, a) / a * fraction(a, 0.5, x)
    } else {
        0.5 - half_beta_complement(ln_x, x, y, degrees)
    }
}

/// Half of I at y = 1 − x of (½, ν/2), which with the other half makes ½.
fn half_beta_complement(ln_x: f64, x: f64, y: f64, degrees: f64) -> f64 {
    let a = 0.5 * degrees;
    if x < (a + 1.0) / (a + 2.5) {
        0.5 - half_beta(ln_x, x, y, degrees)
    } else {
        front(ln_x, y, a) * fraction(0.5, a, y)
    }
}

/// x^a·y^½ / B(a, ½).
fn front(ln_x: f64, y: f64, a: f64) -> f64 {
    libm::exp(a * ln_x + ln_gamma_ratio(a)) * (y / std::f64::consts::PI).sqrt()
}

/// ln Γ(a + ½) − ln Γ(a), carried up to where the asymptotic series has 1e-15 left.
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
