//! A temperature from few labels.
//!
//! With ten or fifty labels the most likely temperature is mostly noise: a handful of right answers gives far too high a
//! confidence. A penalty stabilises the fit: ln T nats for T ≥ 1 and 4·ln(1/T) for T < 1, added to the *summed* NLL. It is a
//! prior on T that falls as 1/T above one and as T⁴ below: networks are usually over-confident, and a wrong step towards
//! more confidence costs more than one away from it. A few hundred labels outweigh it. BENCHMARKS.md shows its effect on
//! runs that were strongly, slightly and not over-confident.

use super::{
    HOTTEST, LabelledLogits, Matrix, MetricsError, Temperature, checked, golden_section, minimise, nll_sum,
    pairs, slope_and_curvature,
};

/// Nats of the penalty for each factor of e above one.
const WARMER: f64 = 1.0;
/// Nats of the penalty for each factor of e below one.
const COLDER: f64 = 4.0;
/// Steps of the grid from T = 1 to the coldest temperature: less than 5% each.
const STEPS: u32 = 64;

impl Temperature {
    /// Fits the temperature with the smallest summed NLL + ln T (for T ≥ 1) or + 4·ln(1/T) (for T < 1): for few labels, and
    /// as good as [`Temperature::fit`] with many.
    ///
    /// ```
    /// use calmix_core::matrix::Matrix;
    /// use calmix_metrics::calibrator::temperature::Temperature;
    ///
    /// // Five of five right at a confidence of 73%: the most likely temperature is the coldest there is.
    /// let logits = [1.0, 0.0].repeat(5);
    /// let logits = Matrix::new(&logits, 5, 2)?;
    /// assert!(Temperature::fit(logits, &[0; 5])?.is_at_bound());
    /// assert_eq!(Temperature::fit_cautiously(logits, &[0; 5])?, Temperature::IDENTITY);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Temperature::fit`].
    pub fn fit_cautiously(logits: Matrix, labels: &[u32]) -> Result<Self, MetricsError> {
        checked::logits(logits, labels)?;
        checked::not_empty(labels)?;
        let rows = pairs(logits, labels);
        let slope = slope_and_curvature(rows.clone(), 1.0).0;
        let best = if slope > WARMER {
            // Convex in β = 1/T, as the NLL is: −ln β is.
            Self(minimise(|beta| {
                let (slope, curvature) = slope_and_curvature(rows.clone(), beta);
                (slope - WARMER / beta, curvature + WARMER / (beta * beta))
            }))
        } else if slope < 0.0 {
            coldest_of_grid(&rows)
        } else {
            Self::IDENTITY
        };
        let objective = |t: Self| nll_sum(rows.clone(), t) + penalty(t.0);
        Ok(if objective(best) < objective(Self::IDENTITY) { best } else { Self::IDENTITY })
    }
}

fn penalty(t: f64) -> f64 {
    if t >= 1.0 { WARMER * libm::log(t) } else { -COLDER * libm::log(t) }
}

/// Finds the best temperature of at most one. The penalty is not convex here, so a grid of ln β brackets the minimum and a
/// golden-section search refines it.
fn coldest_of_grid<'a>(rows: &(impl Iterator<Item = LabelledLogits<'a>> + Clone)) -> Temperature {
    let width = libm::log(HOTTEST) / f64::from(STEPS);
    let at = |x: f64| Temperature(libm::exp(-x));
    let objective = |x: f64| nll_sum(rows.clone(), at(x)) + COLDER * x;
    at(golden_section(width, STEPS, objective))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(logits: &[f32], labels: &[u32]) -> Temperature {
        Temperature::fit_cautiously(Matrix::new(logits, labels.len(), 2).unwrap(), labels).unwrap()
    }

    /// The objective itself, at every ten-thousandth of ln T.
    fn by_search(logits: &[f32], labels: &[u32]) -> f64 {
        let logits = Matrix::new(logits, labels.len(), 2).unwrap();
        let objective = |t: f64| nll_sum(pairs(logits, labels), Temperature(t)) + penalty(t);
        let all = (-30_000..=30_000).map(|x| libm::exp(f64::from(x) * 1e-4));
        all.min_by(|a, b| objective(*a).total_cmp(&objective(*b))).unwrap()
    }

    #[test]
    fn a_search_finds_no_better_one() {
        for (margin, n, wrong) in [
            (6.0, 20, 5),
            (6.0, 10, 1),
            (2.0, 50, 12),
            (1.0, 200, 2),
            (0.5, 400, 0),
            (3.0, 30, 1),
            (1.0, 60, 1),
        ] {
            let logits = [margin, 0.0].repeat(n);
            let labels: Vec<u32> = (0..n).map(|i| u32::from(i < wrong)).collect();
            let found = fit(&logits, &labels).value();
            let wanted = by_search(&logits, &labels);
            // Two points of the search are 1e-4 apart.
            assert!(
                (libm::log(found) - libm::log(wanted)).abs() <= 1e-4,
                "{margin} {n} {wrong}: {found} {wanted}"
            );
        }
    }

    #[test]
    fn few_labels_move_it_little_and_many_as_far_as_they_say() {
        // A quarter wrong at a margin of 6: the most likely temperature is 6 / ln 3 = 5.46.
        let at = |n: usize| {
            let labels: Vec<u32> = (0..n).map(|i| u32::from(i % 4 == 0)).collect();
            fit(&[6.0, 0.0].repeat(n), &labels).value()
        };
        let likeliest = 6.0 / 3.0_f64.ln();
        assert!(at(4) < at(20) && at(20) < at(400) && at(400) < likeliest);
        assert!(at(20) > 4.0 && at(40_000) > 0.999 * likeliest);
        // Half right at a margin of zero says nothing.
        assert_eq!(fit(&[0.0, 0.0].repeat(4), &[0, 1, 0, 1]), Temperature::IDENTITY);
    }
}
