//! What a loss is made of: a list of terms, each of one kind. The engine knows how a kind is computed, and nothing about
//! why a method asks for it.

use crate::mixup::MixLoss;
use crate::settings::limit::from;
use crate::settings::section;

section! {
    /// A penalty on the logit distances of selected unlabelled images (Mishra et al. 2024, arXiv 2403.15567).
    LogitPenalty {
        /// Its weight in the loss; 0 for none, 0.1 in its paper.
        fixed weight: f64 = 0.0, from(0.0);
        /// How far a logit may lie below the largest before it costs.
        #[when(weight is not 0.0)]
        fixed margin: f64 = 10.0, from(0.0);
    }
}

impl Copy for LogitPenalty {}

/// A term of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossTerm {
    /// What is computed.
    pub kind: LossKind,
    /// What it is multiplied with in the sum.
    pub weight: f64,
}

/// What a term is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossKind {
    /// L_L: the mean cross-entropy of the labelled rows.
    Labelled,
    /// L_U: `(1/μB) Σ_j w_j·H(ŷ_j, p(strong view j))`.
    Unlabelled,
    /// L_mix: `Σ weight·H(target, p(mixture))`.
    Mixup(MixLoss),
    /// FreeMatch's fairness: `Σ_c t_c·log q_c`, where q is the mean prediction of the selected strong views, divided by
    /// their histogram and normalised, and t the plan's target. A function of a mean: the mean over the shards of a
    /// group. A class without a selected row counts nothing.
    Fairness,
    /// The logit distance: the mean of `max(0, max_j z_j − z_c − margin)` over the classes and the selected strong views
    /// (Mishra et al. 2024). The mean over the shards of a group. A row is selected by its weight, where its strong view
    /// agrees with its pseudo-label.
    LogitDistance {
        /// How far a logit may lie below the largest before it costs.
        margin: f64,
    },
}

impl LossKind {
    /// What messages call it.
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
