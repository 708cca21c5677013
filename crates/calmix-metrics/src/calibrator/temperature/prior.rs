//! The most probable temperature under a prior, for a model with few labels that is known to be almost calibrated.
//!
//! A head on frozen features, trained with few labels, is usually only slightly over-confident. Its out-of-fold labels are
//! few, and the maximum-likelihood temperature then makes it worse more often than better. A log-normal prior
//! slightly above one dominates until there are enough labels.

use super::newton::{Objective, minimise_between};
use super::{Matrix, MetricsError, Temperature, checked, pairs};

/// A log-normal distribution of temperatures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TemperaturePrior {
    /// The median temperature.
    pub median: f64,
    /// The standard deviation of ln T.
    pub sigma: f64,
}

/// The number of standard deviations searched on each side of the median.
const REACH: f64 = 8.0;

impl TemperaturePrior {
    /// The prior for heads on frozen features, chosen on CIFAR-10 with 4 labels per class and one backbone.
    pub const HEADS: Self = Self { median: 1.1, sigma: 0.15 };

    /// Adds −ln of its density, up to a constant: ½·(ln(β·median)/σ)².
    fn penalised(self, nll: Objective, beta: f64) -> Objective {
        let deviation = libm::log(beta * self.median);
        let precision = 1.0 / (self.sigma * self.sigma);
        Objective {
            value: nll.value + 0.5 * precision * deviation * deviation,
            slope: nll.slope + precision * deviation / beta,
            curvature: nll.curvature + precision * (1.0 - deviation) / (beta * beta),
        }
    }
}

impl Temperature {
    /// Fits the most probable temperature: the one with the smallest summed NLL − ln of the prior.
    pub fn fit_with_prior(
        logits: Matrix,
        labels: &[u32],
        prior: TemperaturePrior,
    ) -> Result<Self, MetricsError> {
        checked::fit_rows(logits, labels)?;
        let rows = pairs(logits, labels);
        // Both the NLL and the penalty are convex in β = 1/T for T above the median divided by e, which is nearly the lowest
        // temperature tried; below it, the bracket still ends at a minimum.
        let start = 1.0 / prior.median;
        let reach = libm::exp(REACH * prior.sigma);
        let objective = |beta: f64| prior.penalised(Objective::nll(rows.clone(), beta), beta);
        let bounds = [start / reach, start * reach];
        Ok(minimise_between(bounds, start, objective(start), objective).temperature)
    }
}

#[cfg(test)]
mod tests {
    use super::super::nll_sum;
    use super::*;

    fn fit(margin: f32, n: usize, wrong: usize) -> f64 {
        let logits = [margin, 0.0].repeat(n);
        let labels: Vec<u32> = (0..n).map(|i| u32::from(i < wrong)).collect();
        let logits = Matrix::new(&logits, n, 2).unwrap();
        Temperature::fit_with_prior(logits, &labels, TemperaturePrior::HEADS).unwrap().value()
    }

    #[test]
    fn prior_dominates_with_few_labels() {
        // A margin of zero says nothing.
        assert!((fit(0.0, 40, 20) - 1.1).abs() < 1e-6);
        // A quarter wrong at a margin of 3: the likeliest temperature is 3 / ln 3 = 2.73.
        let likeliest = 3.0 / 3.0_f64.ln();
        let few = fit(3.0, 12, 3);
        let many = fit(3.0, 40_000, 10_000);
        assert!(few > 1.1 && few < 1.5, "{few}");
        assert!((many / likeliest - 1.0).abs() < 0.01, "{many}");
        // Five right of five alone would give a much lower temperature.
        assert!(fit(1.0, 5, 0) > 0.9);
    }

    #[test]
    fn fit_is_the_global_minimum() {
        let TemperaturePrior { median, sigma } = TemperaturePrior::HEADS;
        let penalty = |t: f64| 0.5 * (libm::log(t / median) / sigma).powi(2);
        // Under-confident, about right, and over-confident; with few labels, and with so many that the prior has no influence.
        for (margin, n, wrong) in
            [(2.0, 30, 9), (0.3, 40, 0), (1.0, 4_000, 5), (6.0, 20, 8), (6.0, 2_000, 600)]
        {
            let logits = [margin, 0.0].repeat(n);
            let labels: Vec<u32> = (0..n).map(|i| u32::from(i < wrong)).collect();
            let matrix = Matrix::new(&logits, n, 2).unwrap();
            let objective = |t: f64| nll_sum(pairs(matrix, &labels), Temperature(t)) + penalty(t);
            let all = (-110..=129).map(|x| libm::exp(f64::from(x) * 1e-2));
            let best = all.min_by(|a, b| objective(*a).total_cmp(&objective(*b))).unwrap();
            let found = fit(margin, n, wrong);
            assert!(objective(found) <= objective(best) + 1e-9, "{margin} {n} {wrong}: {found} {best}");
        }
    }
}
