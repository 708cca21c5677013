//! The terms of a loss, each of one kind. The engine computes each kind without knowing about the method that uses it.

use crate::mixup::MixLoss;
use crate::settings::limit::from;
use crate::settings::section;

section! {
    /// A penalty on the logit distances of selected unlabelled images (Mishra et al. 2024, arXiv 2403.15567).
    LogitPenalty {
        /// The weight of the penalty in the loss; 0 for no penalty, 0.1 in its paper.
        fixed weight: f64 = 0.0, from(0.0);
        /// The distance to the largest logit above which a logit is penalised.
        #[when(weight is not 0.0)]
        fixed margin: f64 = 10.0, from(0.0);
    }
}

impl Copy for LogitPenalty {}

/// A term of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossTerm {
    /// The function that is computed.
    pub kind: LossKind,
    /// The factor of the term in the total loss.
    pub weight: f64,
}

/// The function of a loss term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossKind {
    /// L_L: the mean cross-entropy of the labelled rows.
    Labelled,
    /// L_U: `(1/μB) Σ_j w_j·H(ŷ_j, p(strong view j))`.
    Unlabelled,
    /// L_mix: `Σ weight·H(target, p(mixture))`.
    Mixup(MixLoss),
    /// FreeMatch's fairness: `Σ_c t_c·log q_c`, where q is the mean prediction of the selected strong views, divided by
    /// their histogram and normalised, and t is the plan's target. With micro-batches, q is the mean over those of a group. A
    /// class without a selected row contributes nothing.
    Fairness,
    /// The logit distance: the mean of `max(0, max_j z_j − z_c − margin)` over the classes and the selected strong views
    /// (Mishra et al. 2024). With micro-batches, the mean over those of a group. A row is selected if its weight is not zero
    /// and its strong view agrees with its pseudo-label.
    LogitDistance {
        /// The distance to the largest logit above which a logit is penalised.
        margin: f64,
    },
}

impl LossKind {
    /// Returns its name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Labelled => "labelled loss",
            Self::Unlabelled => "unlabelled loss",
            Self::Mixup(_) => "mixup loss",
            Self::Fairness => "fairness",
            Self::LogitDistance { .. } => "logit distance",
        }
    }
}
