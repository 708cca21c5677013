//! The base algorithms under CalibrateMix: the pseudo-label of an unlabelled sample, and its weight in the loss.
//!
//! Every rule takes the logits of the weak view and gives a hard label (the argmax) and a weight in [0, 1] per
//! row; the unlabelled loss is `(1/μB) Σ_j w_j·H(ŷ_j, p(strong view j))`. The state that a rule keeps between steps
//! is explicit: [`BaseState`] goes in and comes out. Statistics over all groups are in [`Sums`], the state of
//! single samples in [`Samples`](crate::samples::Samples).

mod fixmatch;
mod flexmatch;
mod freematch;
mod labels;
mod softmatch;
mod sums;

use serde::{Deserialize, Serialize};

pub use fixmatch::FixMatch;
pub use flexmatch::{FlexMatch, FlexState, Mapping};
pub use freematch::{FreeMatch, FreeState};
pub use labels::PseudoLabels;
pub use softmatch::{AlignmentTarget, MarginalInit, SoftMatch, SoftState, Statistics};
pub use sums::{BatchSums, Sums};

use labels::hard_labels;

use crate::error::CoreError;
use crate::matrix::Matrix;
use crate::settings::rule;

rule! {
    /// The base algorithm.
    Base {
        /// Labelled images only.
        ///
        /// There is no unlabelled batch; CalibrateMix mixes easy and hard labelled images with each other (LE+LH).
        Supervised = "supervised",
        /// The labelled loss, and mixtures with pseudo-labelled images.
        ///
        /// Unlabelled images have no loss of their own; they take part only in mixtures.
        SupervisedPseudoMixup = "supervised-pseudo-mixup",
        /// A fixed threshold on the confidence.
        FixMatch(fixmatch: FixMatch) = "fixmatch",
        /// A threshold per class that adapts to how well the class is learned.
        FlexMatch(flexmatch: FlexMatch) = "flexmatch",
        /// No threshold: a weight that decreases smoothly below the mean confidence.
        SoftMatch(softmatch: SoftMatch) = "softmatch",
        /// A global threshold and one per class, both adapting to the predictions.
        FreeMatch(freematch: FreeMatch) = "freematch",
    }
    BaseKeys {
        base: BaseName = FixMatch;
        /// FixMatch's settings.
        fixmatch: FixMatch;
        /// FlexMatch's settings.
        flexmatch: FlexMatch;
        /// SoftMatch's settings.
        softmatch: SoftMatch;
        /// FreeMatch's settings.
        freematch: FreeMatch;
    }
}

/// The state of a base algorithm between steps, apart from the state of single samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BaseState {
    /// No state: the supervised bases and FixMatch.
    Stateless,
    /// FlexMatch's histogram.
    #[serde(rename = "flexmatch")]
    FlexMatch(FlexState),
    /// SoftMatch's moments.
    #[serde(rename = "softmatch")]
    SoftMatch(SoftState),
    /// FreeMatch's thresholds.
    #[serde(rename = "freematch")]
    FreeMatch(FreeState),
}

impl Base {
    /// Returns the state before the first step, for `classes` classes and `samples` unlabelled samples.
    pub fn initial_state(&self, classes: usize, samples: u64) -> BaseState {
        match self {
            Self::Supervised | Self::SupervisedPseudoMixup | Self::FixMatch(_) => BaseState::Stateless,
            Self::FlexMatch(_) => BaseState::FlexMatch(FlexState::new(classes, samples)),
            Self::SoftMatch(_) => BaseState::SoftMatch(SoftState::new(classes)),
            Self::FreeMatch(_) => BaseState::FreeMatch(FreeState::new(classes)),
        }
    }

    /// Returns whether unlabelled rows have a loss term.
    pub fn has_unlabelled_loss(&self) -> bool {
        !matches!(self, Self::Supervised | Self::SupervisedPseudoMixup)
    }

    /// Returns whether its statistics come from [`Sums`] over all groups.
    fn needs_sums(&self) -> bool {
        matches!(self, Self::SoftMatch(_) | Self::FreeMatch(_))
    }

    /// Computes the sums of a micro-batch, or zeros if the algorithm does not need them.
    pub fn sums(&self, labelled: Matrix<'_>, unlabelled: Matrix<'_>) -> Sums {
        if self.needs_sums() { Sums::of(labelled, unlabelled) } else { Sums::default() }
    }

    /// Returns the length of the list that [`Sums::to_vec`] makes of a micro-batch's sums.
    pub fn sums_width(&self, classes: usize) -> usize {
        Sums::width(if self.needs_sums() { classes } else { 0 })
    }

    /// Returns the labels and weights of one group's unlabelled batch, after updating `state` with the step's `sums`.
    ///
    /// # Errors
    /// If `state` belongs to another algorithm.
    pub fn pseudo_label(
        &self,
        unlabelled: Matrix<'_>,
        sums: &Sums,
        state: &mut BaseState,
    ) -> Result<PseudoLabels, CoreError> {
        match (self, state) {
            (Self::Supervised | Self::SupervisedPseudoMixup, BaseState::Stateless) => {
                Ok(PseudoLabels::new(hard_labels(unlabelled), vec![0.0; unlabelled.rows()]))
            }
            (Self::FixMatch(rule), BaseState::Stateless) => Ok(rule.pseudo_label(unlabelled)),
            (Self::FlexMatch(rule), BaseState::FlexMatch(state)) => Ok(rule.pseudo_label(unlabelled, state)),
            (Self::SoftMatch(rule), BaseState::SoftMatch(state)) => {
                Ok(rule.pseudo_label(unlabelled, sums, state))
            }
            (Self::FreeMatch(rule), BaseState::FreeMatch(state)) => {
                Ok(rule.pseudo_label(unlabelled, sums, state))
            }
            _ => Err(CoreError::MissingState { what: "the base algorithm's statistics" }),
        }
    }
}
