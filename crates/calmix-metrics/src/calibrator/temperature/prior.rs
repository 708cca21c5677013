//! The most probable temperature under a prior, for a model with few labels that is known to be almost calibrated.
//!
//! A head on frozen features, trained with few labels, is usually only slightly over-confident. Its out-of-fold labels are
//! few, and the maximum-likelihood temperature then makes it worse more often than better. A log-normal prior
//! slightly above one dominates until there are enough labels.

use super::{LabelledLogits, Matrix, MetricsError, Temperature, checked, golden_section, nll_sum, pairs};

/// A log-normal distribution of temperatures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TemperaturePrior {
    /// The median temperature.
    pub median: f64,
    /// The standard deviation of ln T.
    pub sigma: f64,
}

/// The number of grid steps on each side of the median.
const STEPS: u32 = 64;
/// The number of standard deviations that the grid covers on each side.
const REACH: f64 = 8.0;

impl TemperaturePrior {
    /// The prior for heads on frozen features, chosen on CIFAR-10 with 4 labels per class and one backbone.
    pub const HEADS: Self = Self { median: 1.1, sigma: 0.15 };

    /// Computes −ln of its density, up to a constant.
    fn penalty(self, t: f64) -> f64 {
        let deviations = (libm::log(t) - libm::log(self.median)) / self.sigma;
        0.5 * deviations * deviations
    }
}

impl Temperature {
    /// Fits the most probable temperature: the one with the smallest summed NLL − ln of the prior.
    ///
    /// # Errors
    /// As [`Temperature::fit`].
    pub fn fit_with_prior(
        logits: Matrix,
        labels: &[u32],
        prior: TemperaturePrior,
    ) -> Result<Self, MetricsError> {
        checked::logits(logits, labels)?;
        checked::not_empty(labels)?;
        let rows = pairs(logits, labels);
        Ok(most_probable(&rows, prior))
    }
}

/// Minimises by a grid of ln T and a golden-section search, because the NLL need not be convex in ln T.
fn most_probable<'a>(
    rows: &(impl Iterator<Item = LabelledLogits<'a, f32>> + Clone),
    prior: TemperaturePrior,
) -> Temperature {
    let width = REACH * prior.sigma / f64::from(STEPS);
    let lowest = libm::log(prior.median) - REACH * prior.sigma;
    let at = |x: f64| Temperature(libm::exp(lowest + x));
    let objective = |x: f64| {
        let t = at(x);
        nll_sum(rows.clone(), t) + prior.penalty(t.0)
    };
    at(golden_section(width, 2 * STEPS, objective))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(margin: f32, n: usize, wrong: usize) -> f64 {
        let logits = [margin, 0.0].repeat(n);
        let labels: Vec<u32> = (0..n).map(|i| u32::from(i < wrong)).collect();
        let logits = Matrix::new(&logits, n, 2).unwrap();
        Temperature::fit_with_prior(logits, &labels, TemperaturePrior::HEADS).unwrap().value()
    }

    #[test]
    fn the_prior_decides_until_the_labels_do() {
        // A margin of zero says nothing.
        assert!((fit(0.0, 40, 20) - 1.1).abs() < 1e-6);
        // A quarter wrong at a margin of 3: the likeliest temperature is 3 / ln 3 = 2.73.
        let likeliest = 3.0 / 3.0_f64.ln();
        let few = fit(3.0, 12, 3);
        let many = fit(3.0, 40_000, 10_000);
        assert!(few > 1.1 && few < 1.5, "{few}");
        assert!((many / likeliest - 1.0).abs() < 0.01, "{many}");
        // Never as cold as five right of five ask for.
        assert!(fit(1.0, 5, 0) > 0.9);
    }

    #[test]
    fn a_search_finds_no_better_one() {
        let n = 30;
        let wrong = 9;
        let logits = [2.0_f32, 0.0].repeat(n);
        let labels: Vec<u32> = (0..n).map(|i| u32::from(i < wrong)).collect();
        let matrix = Matrix::new(&logits, n, 2).unwrap();
        let objective =
            |t: f64| nll_sum(pairs(matrix, &labels), Temperature(t)) + TemperaturePrior::HEADS.penalty(t);
        let all = (-10_000..=10_000).map(|x| libm::exp(f64::from(x) * 1e-4));
        let wanted = all.min_by(|a, b| objective(*a).total_cmp(&objective(*b))).unwrap();
        assert!((libm::log(fit(2.0, n, wrong)) - libm::log(wanted)).abs() <= 1e-4);
    }
}
