//! The difficulty of a sample, measured by its margins over training.
//!
//! - AUM, the area under the margin (Pleiss et al. 2020; the paper's method section): for labelled samples, the
//!   mean over visits of `z_y − max_{j≠y} z_j`. [`LabelledMargins`] keeps it.
//! - APM, the average pseudo-margin (Sosea and Caragea 2023; Eq. 3–5): for unlabelled samples, a running
//!   average of the same margin *for every class*, read at the current pseudo-label. [`MarginStore`] keeps it.

mod dense;
mod labelled;

pub use dense::{MarginParts, MarginStore};
pub use labelled::{LabelledMargins, LabelledParts};

use crate::lanes;
use crate::settings::limit::{POSITIVE_SHARE, UNIT_INTERVAL};
use crate::settings::rule;
use crate::softmax::argmax;

/// Computes the margin of `class`: `z_class − max_{j≠class} z_j`. Zero if there is no other class.
pub fn margin(logits: &[f32], class: usize) -> f64 {
    match logits.get(class) {
        Some(&z) if logits.len() > 1 => f64::from(z) - f64::from(largest_other(logits, class)),
        _ => 0.0,
    }
}

fn largest_other(logits: &[f32], class: usize) -> f32 {
    lanes::max(&logits[..class]).max(lanes::max(&logits[class + 1..]))
}

/// Returns the class of the largest logit, its value and the second-largest value (the same value if there is one class).
fn top_two(logits: &[f32]) -> (usize, f64, f64) {
    let top = argmax(logits);
    let Some(&first) = logits.get(top) else { return (0, 0.0, 0.0) };
    let second = if logits.len() < 2 { first } else { largest_other(logits, top) };
    (top, f64::from(first), f64::from(second))
}

rule! {
    /// How a sample's margins are averaged over its visits, for both AUM and APM.
    ///
    /// Both rules have the form `A ← A + w(t)·(PM − A)`, where t counts the earlier visits of *this sample*.
    Averaging {
        /// A mean over all visits, as in the paper.
        ///
        /// AUM is the plain mean, `w = 1/(1 + t)`. APM follows Eq. 5, `w = δ/(1 + t)`, "we set the smoothing parameter
        /// δ = 0.997", which gives earlier visits slightly more weight.
        Cumulative { delta: f64 } = "cumulative",
        /// An exponential moving average with ρ, which forgets early margins.
        ///
        /// Bias-corrected: `w = (1 − ρ)/(1 − ρ^(1+t))`.
        Exponential { rho: f64 } = "exponential",
    }
    AveragingKeys {
        averaging: AveragingWord = Cumulative;
        /// δ of the cumulative average of APM; AUM does not use it.
        delta: f64 = 0.997, POSITIVE_SHARE;
        /// ρ: the share of the exponential average that each visit keeps.
        rho: f64 = 0.9, UNIT_INTERVAL;
    }
}

impl Averaging {
    /// Returns the weight w of a visit after `visits` earlier ones, for APM.
    pub fn step_size(self, visits: u32) -> f64 {
        let nth = f64::from(visits) + 1.0;
        match self {
            Self::Cumulative { delta } => delta / nth,
            Self::Exponential { rho } => (1.0 - rho) / (1.0 - libm::pow(rho, nth)),
        }
    }

    /// Returns the weight w of a visit after `visits` earlier ones, for AUM, whose definition has no δ.
    pub fn aum_step_size(self, visits: u32) -> f64 {
        match self {
            Self::Cumulative { .. } => 1.0 / (f64::from(visits) + 1.0),
            Self::Exponential { .. } => self.step_size(visits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_against_the_best_other_class() {
        assert_eq!(margin(&[2.0, 1.0, -1.0], 0), 1.0);
        assert_eq!(margin(&[2.0, 1.0, -1.0], 2), -3.0);
        assert_eq!(margin(&[-5.0, -7.0], 0), 2.0, "negative rivals count as they are, not as zero");
        assert_eq!((margin(&[3.0], 0), margin(&[], 0)), (0.0, 0.0));
    }

    #[test]
    fn exponential_averaging_is_adams_bias_correction() {
        let rho = 0.9;
        let rule = Averaging::Exponential { rho };
        let margins = [3.0, -1.0, 0.5, 2.0, 2.0];
        let (mut average, mut raw) = (0.0, 0.0);
        for (t, m) in margins.into_iter().enumerate() {
            average += rule.step_size(t as u32) * (m - average);
            raw = rho * raw + (1.0 - rho) * m;
            let corrected = raw / (1.0 - libm::pow(rho, t as f64 + 1.0));
            assert!((average - corrected).abs() < 1e-14);
        }
    }

    /// The weights it comes to: a plain mean with a slight preference for old visits.
    #[test]
    fn cumulative_averaging_prefers_old_visits() {
        let weight_after = |e: u32, total: u32| {
            let keep = |s| 1.0 - Averaging::default().step_size(s);
            Averaging::default().step_size(e) * (e + 1..total).map(keep).product::<f64>()
        };
        for (e, expected) in [(0, 0.010_13), (50, 0.009_99), (99, 0.009_97)] {
            assert!((weight_after(e, 100) - expected).abs() < 5e-6, "visit {e}: {}", weight_after(e, 100));
        }
    }
}
