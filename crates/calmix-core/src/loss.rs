//! What a loss is made of: a list of terms, each of one kind. The engine knows how a kind is computed, and nothing about
//! why a method asks for it.

use crate::mixup::MixLoss;

/// A term of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossTerm {
    /// What is computed.
    pub kind: LossKind,
    /// What it is multiplied with in the sum.
    pub weight: f64,
}

/// What a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// L_L: the mean cross-entropy of the labelled rows.
    Labelled,
    /// L_U: `(1/μB) Σ_j w_j·H(ŷ_j, p(strong view j))`.
    Unlabelled,
    /// L_mix: `Σ weight·H(target, p(mixture))`.
    Mixup(MixLoss),
}

impl LossKind {
    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Labelled => "labelled loss",
            Self::Unlabelled => "unlabelled loss",
            Self::Mixup(_) => "mixup loss",
        }
    }
}
