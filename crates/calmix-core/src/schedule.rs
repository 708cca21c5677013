//! What changes over the steps of a run: the learning rate, and when the mixup term begins.

use serde::{Deserialize, Serialize};

use crate::margin::Averaging;
use crate::settings::choice;

choice! {
    /// How the learning rate falls.
    LearningRate {
        /// lr·cos(7πk/16K), from lr to 0.195·lr: FixMatch and its successors.
        Cosine = "cosine",
        /// The same at every step.
        Constant = "constant",
    }
}

impl LearningRate {
    /// The learning rate at step `step` of `total`, from the initial one.
    pub fn at(self, step: u64, total: u64, initial: f64) -> f64 {
        match self {
            Self::Constant => initial,
            Self::Cosine => {
                let done = step as f64 / total.max(1) as f64;
                initial * libm::cos(7.0 / 16.0 * std::f64::consts::PI * done).max(0.0)
            }
        }
    }
}

/// When the mixup term begins. "We include warmup during training, with the warmup phase consisting of
/// approximately 100 epochs": until then the base algorithm trains alone, and everything else (schedule, EMA,
/// AUM) runs as ever.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MixStart {
    /// At once and in full, at this step.
    At(u64),
    /// Along half a cosine, from nothing at `from` to full weight at `to` (beyond the paper: no jump).
    Ramp {
        /// The last step without the term.
        from: u64,
        /// The first step with its full weight.
        to: u64,
    },
    /// From the step after the running share of unlabelled samples in use has passed a level, for good (beyond
    /// the paper). FlexMatch and SoftMatch use everything at the first steps, so give them a `not_before`.
    Utilisation {
        /// The share that has to be reached, in [0, 1].
        level: f64,
        /// How much of the running share each step keeps, in [0, 1); bias-corrected.
        momentum: f64,
        /// Steps that do not count.
        not_before: u64,
    },
}

/// The running share of unlabelled samples in use.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilisation {
    /// The running share.
    pub share: f64,
    /// Steps that it has seen.
    pub steps: u32,
    /// Whether the level was ever passed.
    pub passed: bool,
}

impl MixStart {
    /// The paper's warm-up for a run of `total` steps: 100 epochs of 1024 in 2²⁰, the same share of any other.
    pub fn paper(total: u64) -> Self {
        Self::At((u128::from(total) * 100 + 512).div_euclid(1024) as u64)
    }

    /// The weight of the mixup term at `step`, in [0, 1], by what earlier steps left in `utilisation`.
    pub fn weight(self, step: u64, utilisation: &Utilisation) -> f64 {
        match self {
            Self::At(start) => f64::from(u8::from(step >= start)),
            Self::Ramp { from, to } if step < from.max(to) => {
                let done = step.saturating_sub(from) as f64 / to.saturating_sub(from).max(1) as f64;
                0.5 - 0.5 * libm::cos(std::f64::consts::PI * done)
            }
            Self::Ramp { .. } => 1.0,
            Self::Utilisation { .. } => f64::from(u8::from(utilisation.passed)),
        }
    }

    /// Takes in that `in_use` of the unlabelled samples counted at `step`, for the steps after it.
    pub(crate) fn take_in(self, step: u64, in_use: f64, utilisation: &mut Utilisation) {
        let Self::Utilisation { level, momentum, not_before } = self else { return };
        if step >= not_before {
            let rule = Averaging::Exponential { rho: momentum };
            utilisation.share += rule.step_size(utilisation.steps) * (in_use - utilisation.share);
            utilisation.steps = utilisation.steps.saturating_add(1);
            utilisation.passed |= utilisation.share >= level;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worked example, computed independently.
    #[test]
    fn cosine_of_seven_sixteenths() {
        let expected = [0.03, 0.028_246_32, 0.023_190_31, 0.015_423_08, 0.005_852_71];
        for (quarter, expected) in expected.into_iter().enumerate() {
            let lr = LearningRate::Cosine.at(quarter as u64 * 256, 1024, 0.03);
            assert!((lr - expected).abs() < 5e-9, "{lr} is not {expected}");
        }
        assert_eq!(LearningRate::Constant.at(9, 10, 0.03), 0.03);
        assert!(LearningRate::Cosine.at(0, 0, 0.03).is_finite());
    }

    #[test]
    fn the_papers_warm_up() {
        assert_eq!(MixStart::paper(1 << 20), MixStart::At(102_400));
        assert_eq!(MixStart::paper(2_000), MixStart::At(195));
        let unused = Utilisation::default();
        let weights = [102_399, 102_400].map(|s| MixStart::At(102_400).weight(s, &unused));
        assert_eq!(weights, [0.0, 1.0]);
    }

    #[test]
    fn a_ramp_rises_without_a_jump() {
        let unused = Utilisation::default();
        let ramp = MixStart::Ramp { from: 10, to: 20 };
        let weights: Vec<f64> = (0..25).map(|s| ramp.weight(s, &unused)).collect();
        assert!(weights[..=10].iter().all(|&w| w == 0.0) && weights[20..].iter().all(|&w| w == 1.0));
        assert!((weights[15] - 0.5).abs() < 1e-15);
        assert!(weights.windows(2).all(|w| w[0] <= w[1]));
        let backwards = MixStart::Ramp { from: 20, to: 10 };
        assert_eq!([0, 20].map(|s| backwards.weight(s, &unused)), [0.0, 1.0]);
    }

    #[test]
    fn utilisation_starts_once_and_for_all() {
        let start = MixStart::Utilisation { level: 0.5, momentum: 0.5, not_before: 2 };
        let mut seen = Utilisation::default();
        let weights: Vec<f64> = [1.0, 1.0, 0.2, 0.4, 0.9, 0.0, 0.0]
            .iter()
            .zip(0..)
            .map(|(&u, s)| {
                let weight = start.weight(s, &seen);
                start.take_in(s, u, &mut seen);
                weight
            })
            .collect();
        assert_eq!(weights, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0], "the level is passed in the step before");
    }
}
