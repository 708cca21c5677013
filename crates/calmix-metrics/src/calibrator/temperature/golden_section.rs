//! The global minimum of a function of one variable that may have several local minima.

/// The number of golden-section steps, enough to reach the rounding error of a sum.
const REFINEMENTS: u32 = 40;

/// Finds the minimum of a function between 0 and `steps · width`: a grid brackets it and a golden-section search refines it.
pub(super) fn golden_section(width: f64, steps: u32, objective: impl Fn(f64) -> f64) -> f64 {
    let values: Vec<f64> = (0..=steps).map(|step| objective(f64::from(step) * width)).collect();
    let least = (0..=steps).zip(&values).min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(step, _)| step);
    let mut low = f64::from(least.saturating_sub(1)) * width;
    let mut high = f64::from((least + 1).min(steps)) * width;
    let section = 0.5 * (5.0_f64.sqrt() - 1.0);
    let inner = |low: f64, high: f64| (high - section * (high - low), low + section * (high - low));
    let (mut a, mut b) = inner(low, high);
    let mut of_a = objective(a);
    let mut of_b = objective(b);
    for _ in 0..REFINEMENTS {
        if of_a <= of_b {
            (high, b, of_b) = (b, a, of_a);
            a = inner(low, high).0;
            of_a = objective(a);
        } else {
            (low, a, of_a) = (a, b, of_b);
            b = inner(low, high).1;
            of_b = objective(b);
        }
    }
    if of_a <= of_b { a } else { b }
}
