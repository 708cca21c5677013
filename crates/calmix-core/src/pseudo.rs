//! The algorithms under CalibrateMix: which label an unlabelled sample gets, and how much it counts.
//!
//! Every rule takes the logits of the weak view and gives a hard label (the argmax) and a weight in [0, 1] per
//! row; the unlabelled loss is `(1/μB) Σ_j w_j·H(ŷ_j, p(strong view j))`. What a rule remembers between steps
//! is explicit: [`BaseState`] goes in and comes out. What it needs of all groups is in [`Sums`], what it needs of
//! single samples in [`Samples`](crate::samples::Samples).

mod fixmatch;
mod flexmatch;
mod softmatch;
mod sums;

use serde::{Deserialize, Serialize};

pub use fixmatch::FixMatch;
pub use flexmatch::{FlexMatch, FlexState, Mapping};
pub use softmatch::{AlignmentTarget, MarginalInit, SoftMatch, SoftState, Statistics};
pub use sums::{BatchSums, Sums};

use crate::matrix::Matrix;
use crate::samples::StateError;
use crate::settings::rule;
use crate::softmax::argmax;

rule! {
    /// The algorithm underneath.
    Base {
        /// Labelled samples only.
        ///
        /// An unlabelled batch, if there is one, weighs nothing.
        Supervised = "supervised",
        /// A fixed threshold on the confidence.
        FixMatch(fixmatch: FixMatch) = "fixmatch",
        /// A threshold per class that follows how well the class is learnt.
        FlexMatch(flexmatch: FlexMatch) = "flexmatch",
        /// A weight that falls off smoothly below the mean confidence.
        SoftMatch(softmatch: SoftMatch) = "softmatch",
    }
    BaseKeys {
        base: BaseName = FixMatch;
        /// FixMatch's settings.
        fixmatch: FixMatch;
        /// FlexMatch's settings.
        flexmatch: FlexMatch;
        /// SoftMatch's settings.
        softmatch: SoftMatch;
    }
}

/// What a base algorithm remembers between steps, besides the memory of single samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BaseState {
    /// Nothing.
    Stateless,
    /// FlexMatch's histogram.
    #[serde(rename = "flexmatch")]
    FlexMatch(FlexState),
    /// SoftMatch's moments.
    #[serde(rename = "softmatch")]
    SoftMatch(SoftState),
}

/// A hard label and a weight for each unlabelled row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PseudoLabels {
    /// ŷ = argmax of the weak view's logits.
    pub labels: Vec<u32>,
    /// How much each row counts in the unlabelled loss, in [0, 1].
    pub weights: Vec<f32>,
}

impl Base {
    /// The state before the first step, for `classes` classes and `samples` unlabelled samples.
    pub fn initial_state(&self, classes: usize, samples: u64) -> BaseState {
        match self {
            Self::Supervised | Self::FixMatch(_) => BaseState::Stateless,
            Self::FlexMatch(_) => BaseState::FlexMatch(FlexState::new(classes, samples)),
            Self::SoftMatch(_) => BaseState::SoftMatch(SoftState::new(classes)),
        }
    }

    /// Whether its statistics are taken of [`Sums`] over all groups.
    pub(crate) fn needs_sums(&self) -> bool {
        matches!(self, Self::SoftMatch(_))
    }

    /// Labels and weights of one group's unlabelled batch; `state` takes in what the step's `sums` say.
    ///
    /// # Errors
    /// If `state` belongs to another algorithm.
    pub fn pseudo_label(
        &self,
        unlabelled: Matrix<'_>,
        sums: &Sums,
        state: &mut BaseState,
    ) -> Result<PseudoLabels, StateError> {
        match (self, state) {
            (Self::Supervised, BaseState::Stateless) => {
                Ok(PseudoLabels { labels: hard_labels(unlabelled), weights: vec![0.0; unlabelled.rows()] })
            }
            (Self::FixMatch(rule), BaseState::Stateless) => Ok(rule.pseudo_label(unlabelled)),
            (Self::FlexMatch(rule), BaseState::FlexMatch(state)) => Ok(rule.pseudo_label(unlabelled, state)),
            (Self::SoftMatch(rule), BaseState::SoftMatch(state)) => {
                Ok(rule.pseudo_label(unlabelled, sums, state))
            }
            _ => Err(StateError::NotKept { what: "the base algorithm's statistics" }),
        }
    }
}

fn hard_labels(logits: Matrix<'_>) -> Vec<u32> {
    logits.iter().map(|row| argmax(row) as u32).collect()
}
