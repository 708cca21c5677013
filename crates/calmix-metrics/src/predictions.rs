//! The predictions of a network for a split, with their labels.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use calmix_core::settings::choice;

use crate::checked;
use crate::error::MetricsError;
use crate::groups::group_count;

/// Logits and labels of every sample of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// The number of training steps before the evaluation.
    pub step: u64,
    /// The evaluated split.
    pub split: EvalSet,
    /// The evaluated weights.
    pub model: EvalModel,
    /// The names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// The ids of the samples.
    pub ids: Vec<u64>,
    /// The true class of each sample.
    pub labels: Vec<u32>,
    /// One row of logits per sample.
    pub logits: Vec<f32>,
    /// The [group](crate::groups) of each sample; empty if each is a group of its own.
    pub groups: Vec<u32>,
}

/// Logits with their labels, as a calibrator is fitted on them.
#[derive(Debug, Clone, Copy)]
pub struct LabelledLogits<'a> {
    /// One row of logits per label.
    pub logits: Matrix<'a>,
    /// The true class of each row.
    pub labels: &'a [u32],
    /// The [group](crate::groups) of each row; empty if each is a group of its own.
    pub groups: &'a [u32],
}

impl<'a> LabelledLogits<'a> {
    /// Creates logits and labels without groups: all rows are independent of each other.
    pub fn ungrouped(logits: Matrix<'a>, labels: &'a [u32]) -> Self {
        Self { logits, labels, groups: &[] }
    }
}

choice! {
    /// A labelled part of the data.
    EvalSet {
        /// Held-out labels, which may select a model or fit a calibrator.
        Validation = "validation",
        /// Labels that are used only for evaluation.
        Test = "test",
        /// The training labels. Their metrics do not carry over to other samples; if no labels can be held out, a
        /// temperature is fitted on them.
        Labelled = "labelled",
        /// The labels of a head on frozen features, each predicted by a head that was trained without it.
        OutOfFold = "out-of-fold",
        /// The labels of a head that were chosen rather than drawn at random, predicted as those out of fold. They are only
        /// searched for wrong ones.
        Chosen = "chosen",
    }
}

choice! {
    /// The weights that were evaluated.
    EvalModel {
        /// The exponential moving average of the weights.
        Ema = "ema",
        /// The weights that the optimiser updates.
        Live = "live",
    }
}

impl Predictions {
    /// Returns the logits as a matrix.
    ///
    /// # Errors
    /// If there is not one row per label with one logit per class.
    pub fn matrix(&self) -> Result<Matrix<'_>, MetricsError> {
        self.shaped(&self.logits)
    }

    /// Returns other logits of the same samples as a matrix.
    pub fn shaped<'a>(&self, logits: &'a [f32]) -> Result<Matrix<'a>, MetricsError> {
        checked::matrix("logits", logits, self.labels.len(), self.classes.len())
    }

    /// Returns the logits with their labels and groups.
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix), or if only some of the labels have a group.
    pub fn labelled(&self) -> Result<LabelledLogits<'_>, MetricsError> {
        if !self.groups.is_empty() {
            checked::length("groups", self.labels.len(), self.groups.len())?;
        }
        Ok(LabelledLogits { logits: self.matrix()?, labels: &self.labels, groups: &self.groups })
    }

    /// Returns the number of groups; that of the labels if each is a group of its own.
    pub fn group_count(&self) -> usize {
        group_count(&self.groups, self.labels.len())
    }

    /// Returns the seed of the bootstrap for these samples at this step, the same for every model.
    pub(crate) fn seed(&self, of_run: Seed) -> Seed {
        of_run.child(self.step).child(self.split as u64)
    }
}

impl EvalSet {
    /// Returns whether metrics of the set carry over to other samples.
    pub fn is_evaluated(self) -> bool {
        !matches!(self, Self::Labelled | Self::Chosen)
    }

    /// Returns the precedence of the set: a run is evaluated on the one with the highest number.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Labelled | Self::Chosen => 0,
            Self::OutOfFold => 1,
            Self::Validation => 2,
            Self::Test => 3,
        }
    }
}
