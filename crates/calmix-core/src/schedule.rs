//! Schedules over the steps of a run: the learning rate, and the start of the mixup term.

use serde::{Deserialize, Serialize};

use crate::margin::Averaging;
use crate::settings::limit::{ANY, SHARE, UNIT_INTERVAL};
use crate::settings::{choice, rule, section};

choice! {
    /// The learning rate schedule.
    LearningRate {
        /// lr·cos(7πk/16K), from lr to 0.195·lr, as in FixMatch and its successors.
        Cosine = "cosine",
        /// The same learning rate at every step.
        Constant = "constant",
    }
}

impl LearningRate {
    /// Returns the learning rate at a step, given the initial one.
    pub fn at(self, at: RunStep, initial: f64) -> f64 {
        match self {
            Self::Constant => initial,
            Self::Cosine => {
                let done = at.step as f64 / at.steps.max(1) as f64;
                initial * libm::cos(7.0 / 16.0 * std::f64::consts::PI * done).max(0.0)
            }
        }
    }
}

section! {
    /// When the mixup term starts; until then the base algorithm trains alone.
    ///
    /// "We include warmup during training, with the warmup phase consisting of approximately 100 epochs". Everything
    /// else (schedule, EMA, AUM) is not affected.
    Start {
        /// How the start is set.
        fixed rule: StartRule;
    }
}

impl Copy for Start {}

rule! {
    /// How the start of the mixup term is set.
    StartRule {
        /// After the share `share` of the run.
        Share { share: f64 } = "share",
        /// At the step `step`.
        Step { step: u64 } = "step",
        /// A ramp along half a cosine, from weight 0 at `share` to full weight at `full`.
        ///
        /// Not in the paper: it avoids a jump in the loss.
        Ramp { share: f64, full: f64 } = "ramp",
        /// When the share of unlabelled samples in use reaches `level`.
        ///
        /// Not in the paper. The term stays on from the next step. FlexMatch and SoftMatch use all samples in the first steps,
        /// so set `not_before` with them.
        Utilisation { level: f64, momentum: f64, not_before: u64 } = "utilisation",
    }
    StartKeys {
        rule: StartRuleName = Share;
        /// The share of the run before the mixup term starts. "Approximately 100 epochs" of 1024 steps in 2^20: 0.09765625.
        share: f64 = 0.097_656_25, SHARE;
        /// The share of the run at which a ramp reaches full weight.
        full: f64 = 0.2, SHARE;
        /// The first step with the mixup term.
        step: u64 = 0, ANY;
        /// The running share of unlabelled samples in use at which the mixup term starts.
        level: f64 = 0.5, SHARE;
        /// The momentum of that running share, which is bias-corrected.
        momentum: f64 = 0.999, UNIT_INTERVAL;
        /// The first step that is included in that running share.
        not_before: u64 = 0, ANY;
    }
}

/// The position of a run: before step `step` of `steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStep {
    /// The step, counted from zero.
    pub step: u64,
    /// The number of steps in the run.
    pub steps: u64,
}

/// The running share of unlabelled samples in use (their mean weight).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilisation {
    /// The running share, in [0, 1].
    pub share: f64,
    /// The number of steps averaged so far, for the bias correction.
    pub steps: u32,
    /// Whether the share has ever reached the level.
    pub passed: bool,
}

impl RunStep {
    /// Returns the step at a share of the run, rounded half up.
    fn step_at(self, share: f64) -> u64 {
        (self.steps as f64 * share + 0.5).floor() as u64
    }
}

impl Start {
    /// Starts with full weight at `step`.
    pub fn at(step: u64) -> Self {
        Self { rule: StartRule::Step { step } }
    }

    /// Returns the weight of the mixup term at a step, in [0, 1], given the `utilisation` of earlier steps.
    pub fn weight(self, at: RunStep, utilisation: &Utilisation) -> f64 {
        let full = match self.rule {
            StartRule::Share { share } => at.step >= at.step_at(share),
            StartRule::Step { step } => at.step >= step,
            StartRule::Ramp { share, full } => {
                let (from, to) = (at.step_at(share), at.step_at(full));
                if at.step < from.max(to) {
                    let done = at.step.saturating_sub(from) as f64 / to.saturating_sub(from).max(1) as f64;
                    return 0.5 - 0.5 * libm::cos(std::f64::consts::PI * done);
                }
                true
            }
            StartRule::Utilisation { .. } => utilisation.passed,
        };
        f64::from(u8::from(full))
    }

    /// Returns the first step with the mixup term in a run of `steps`; `None` if it depends on the training.
    pub fn first_step(self, steps: u64) -> Option<u64> {
        let run = RunStep { step: 0, steps };
        match self.rule {
            StartRule::Share { share } => Some(run.step_at(share)),
            StartRule::Step { step } => Some(step),
            StartRule::Ramp { share, .. } => Some(run.step_at(share).saturating_add(1)),
            StartRule::Utilisation { .. } => None,
        }
    }

    /// Updates the running share with `share`, the share of unlabelled samples in use at `step`.
    pub(crate) fn update(self, step: u64, share: f64, utilisation: &mut Utilisation) {
        let StartRule::Utilisation { level, momentum, not_before } = self.rule else { return };
        if step >= not_before {
            let rule = Averaging::Exponential { rho: momentum };
            utilisation.share += rule.step_size(utilisation.steps) * (share - utilisation.share);
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
            let at = RunStep { step: quarter as u64 * 256, steps: 1024 };
            let lr = LearningRate::Cosine.at(at, 0.03);
            assert!((lr - expected).abs() < 5e-9, "{lr} is not {expected}");
        }
        assert_eq!(LearningRate::Constant.at(RunStep { step: 9, steps: 10 }, 0.03), 0.03);
        assert!(LearningRate::Cosine.at(RunStep { step: 0, steps: 0 }, 0.03).is_finite());
    }

    fn weight(rule: StartRule, step: u64, steps: u64) -> f64 {
        Start { rule }.weight(RunStep { step, steps }, &Utilisation::default())
    }

    #[test]
    fn the_papers_warm_up() {
        let start = Start::default();
        assert_eq!([1 << 20, 2_000].map(|steps| start.first_step(steps)), [Some(102_400), Some(195)]);
        assert_eq!([102_399, 102_400].map(|step| weight(start.rule, step, 1 << 20)), [0.0, 1.0]);
    }

    #[test]
    fn a_ramp_rises_without_a_jump() {
        let ramp = StartRule::Ramp { share: 0.1, full: 0.2 };
        let weights: Vec<f64> = (0..25).map(|step| weight(ramp, step, 100)).collect();
        assert!(weights[..=10].iter().all(|&w| w == 0.0) && weights[20..].iter().all(|&w| w == 1.0));
        assert!((weights[15] - 0.5).abs() < 1e-15);
        assert!(weights.windows(2).all(|w| w[0] <= w[1]));
        let backwards = StartRule::Ramp { share: 0.2, full: 0.1 };
        assert_eq!([0, 20].map(|step| weight(backwards, step, 100)), [0.0, 1.0]);
    }

    #[test]
    fn utilisation_start_stays_on() {
        let start = Start { rule: StartRule::Utilisation { level: 0.5, momentum: 0.5, not_before: 2 } };
        let mut utilisation = Utilisation::default();
        let weights: Vec<f64> = [1.0, 1.0, 0.2, 0.4, 0.9, 0.0, 0.0]
            .iter()
            .zip(0..)
            .map(|(&u, step)| {
                let weight = start.weight(RunStep { step, steps: 7 }, &utilisation);
                start.update(step, u, &mut utilisation);
                weight
            })
            .collect();
        assert_eq!(weights, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0], "the level is passed in the step before");
    }
}
