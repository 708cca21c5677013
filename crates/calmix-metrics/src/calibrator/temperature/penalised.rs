//! A temperature from few labels.
//!
//! With ten or fifty labels the most likely temperature is mostly noise: a handful of right answers gives far too high a
//! confidence. A penalty stabilises the fit: ln T nats for T ≥ 1 and 4·ln(1/T) for T < 1, added to the *summed* NLL. It is a
//! prior on T that falls as 1/T above one and as T⁴ below: networks are usually over-confident, and a wrong step towards
//! more confidence costs more than one away from it. A few hundred labels outweigh it. docs/study/heads.md shows its effect on
//! runs that were strongly, slightly and not over-confident.

use super::newton::{Minimum, Objective, minimise, no_worse};
use super::{MIN_TEMPERATURE, MatrixOf, MetricsError, Scalar, Temperature, checked, nll_sum, pairs};

/// The penalty in nats for each factor of e above one.
const PENALTY_ABOVE_ONE: f64 = 1.0;
/// The penalty in nats for each factor of e below one.
const PENALTY_BELOW_ONE: f64 = 4.0;
/// The amount, in nats of the penalised NLL, by which an untried temperature may be better than the returned one.
const TOLERANCE: f64 = 1e-6;
/// The size of the last Newton step, relative to β.
const LAST_STEP: f64 = 1e-8;
/// The maximum number of points, more than any search needed: each halves the part of an interval in which a minimum can be.
const MAX_POINTS: usize = 500;

impl Temperature {
    /// Fits the temperature with the smallest summed NLL + ln T (for T ≥ 1) or + 4·ln(1/T) (for T < 1). For few labels; with many
    /// it is as good as [`Temperature::fit`].
    ///
    /// ```
    /// use calmix_core::matrix::Matrix;
    /// use calmix_metrics::calibrator::temperature::Temperature;
    ///
    /// // Five of five right at a confidence of 73%: the most likely temperature is the coldest there is.
    /// let logits = [1.0, 0.0].repeat(5);
    /// let logits = Matrix::new(&logits, 5, 2)?;
    /// assert!(Temperature::fit(logits, &[0; 5])?.is_at_bound());
    /// assert_eq!(Temperature::fit_penalised(logits, &[0; 5])?, Temperature::IDENTITY);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_penalised<T: Scalar>(logits: MatrixOf<'_, T>, labels: &[u32]) -> Result<Self, MetricsError> {
        checked::fit_rows(logits, labels)?;
        let rows = pairs(logits, labels);
        let start = Objective::nll(rows.clone(), 1.0);
        let best = if start.slope > PENALTY_ABOVE_ONE {
            // Convex in β = 1/T, as the NLL is: −ln β is.
            minimise(start.penalised(1.0, -PENALTY_ABOVE_ONE), |beta| {
                Objective::nll(rows.clone(), beta).penalised(beta, -PENALTY_ABOVE_ONE)
            })
        } else if start.slope < 0.0 {
            minimise_colder(start, |beta| Objective::nll(rows.clone(), beta))
        } else {
            return Ok(Self::IDENTITY);
        };
        Ok(no_worse(best, start, |t| nll_sum(rows.clone(), t) + penalty(t.0)))
    }
}

impl Objective {
    /// Adds `nats`·ln β.
    fn penalised(self, beta: f64, nats: f64) -> Self {
        let by_beta = nats / beta;
        Self {
            value: self.value + nats * libm::log(beta),
            slope: self.slope + by_beta,
            curvature: self.curvature - by_beta / beta,
        }
    }
}

fn penalty(t: f64) -> f64 {
    if t >= 1.0 { PENALTY_ABOVE_ONE * libm::log(t) } else { -PENALTY_BELOW_ONE * libm::log(t) }
}

/// The NLL at one β.
#[derive(Debug, Clone, Copy)]
struct Tried {
    beta: f64,
    nll: Objective,
}

impl Tried {
    /// Returns the penalised NLL.
    fn objective(&self) -> Objective {
        self.nll.penalised(self.beta, PENALTY_BELOW_ONE)
    }

    /// Intersects the tangents of the NLL in two points; returns β and the penalised value at the intersection.
    fn meet(&self, other: &Self) -> (f64, f64) {
        let Objective { value, slope, .. } = self.nll;
        let rise = other.nll.slope - slope;
        let along = (value - other.nll.value + other.nll.slope * (other.beta - self.beta)) / rise;
        // Rounding can move the intersection out of the interval, and parallel tangents have none.
        let along = if along > 0.0 { along.min(other.beta - self.beta) } else { 0.0 };
        let beta = self.beta + along;
        (beta, value + slope * along + PENALTY_BELOW_ONE * libm::log(beta))
    }
}

/// Finds the best temperature of at most one, from the NLL at β = 1.
///
/// The NLL is convex in β, but with the penalty 4·ln β it is not and may have several minima. Two tangents bound the NLL
/// between two points from below, and a straight line with 4·ln β is concave, so it is lowest at its ends: between two points,
/// the penalised NLL is nowhere lower than in them or where their tangents meet. Newton's method finds a minimum; then the
/// intervals that could have a lower one are divided, until none could.
fn minimise_colder(start: Objective, nll: impl Fn(f64) -> Objective) -> Minimum {
    let at = |beta: f64| Tried { beta, nll: nll(beta) };
    let mut tried = vec![Tried { beta: 1.0, nll: start }, at(1.0 / MIN_TEMPERATURE)];
    let lower = |a: &&Tried, b: &&Tried| a.objective().value.total_cmp(&b.objective().value);
    let mut best = *tried.iter().min_by(lower).unwrap_or(&tried[0]);
    while tried.len() < MAX_POINTS {
        let Objective { value, slope, curvature } = best.objective();
        let newton = best.beta - slope / curvature;
        let is_new = (newton - best.beta).abs() > LAST_STEP * best.beta;
        let inside = newton > 1.0 && newton < 1.0 / MIN_TEMPERATURE;
        let next = if curvature > 0.0 && inside && is_new {
            newton
        } else {
            let meets = tried.windows(2).map(|pair| pair[0].meet(&pair[1]));
            let Some((beta, height)) = meets.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            if height >= value - TOLERANCE {
                break;
            }
            beta
        };
        let place = tried.partition_point(|tried| tried.beta < next);
        if tried.get(place).is_some_and(|tried| tried.beta == next) {
            break;
        }
        let new = at(next);
        tried.insert(place, new);
        if new.objective().value < value {
            best = new;
        }
    }
    Minimum { temperature: Temperature(1.0 / best.beta), value: best.objective().value }
}

#[cfg(test)]
mod tests {
    use super::super::{Matrix, negative_log_likelihood};
    use super::*;

    fn fit(logits: &[f32], labels: &[u32]) -> Temperature {
        Temperature::fit_penalised(Matrix::new(logits, labels.len(), 2).unwrap(), labels).unwrap()
    }

    /// The objective itself, at every ten-thousandth of ln T, for rows that are all the same.
    fn by_search(row: &[f32], right: usize, wrong: usize) -> f64 {
        let nll = |class: usize, t: f64| negative_log_likelihood(row, class, t);
        let objective = |t: f64| right as f64 * nll(0, t) + wrong as f64 * nll(1, t) + penalty(t);
        let all = (-30_000..=30_000).map(|x| libm::exp(f64::from(x) * 1e-4));
        all.min_by(|a, b| objective(*a).total_cmp(&objective(*b))).unwrap()
    }

    #[test]
    fn fit_is_the_global_minimum() {
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
            let expected = by_search(&[margin, 0.0], n - wrong, wrong);
            // Two points of the search are 1e-4 apart.
            assert!(
                (libm::log(found) - libm::log(expected)).abs() <= 1e-4,
                "{margin} {n} {wrong}: {found} {expected}"
            );
        }
    }

    #[test]
    fn penalty_matters_with_few_labels_alone() {
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
