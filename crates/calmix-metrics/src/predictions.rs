//! The predictions of a network for a split, with their labels.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use crate::error::MetricsError;

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
}

/// A part of the data whose labels are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalSet {
    /// Held-out labels, which may select a model or fit a calibrator.
    Validation,
    /// Labels that are used only for evaluation.
    Test,
    /// The training labels. Their metrics do not carry over to other samples; if no labels can be held out, a
    /// temperature is fitted on them.
    Labelled,
    /// The labels of a head on frozen features, each predicted by a head that was trained without it.
    OutOfFold,
}

/// The weights that were evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalModel {
    /// The exponential moving average of the weights.
    Ema,
    /// The weights that the optimiser updates.
    Live,
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
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix).
    pub fn shaped<'a>(&self, logits: &'a [f32]) -> Result<Matrix<'a>, MetricsError> {
        let rows = self.labels.len();
        let width = self.classes.len();
        Matrix::new(logits, rows, width).map_err(|_| MetricsError::Length {
            what: "logits",
            expected: rows.saturating_mul(width),
            got: logits.len(),
        })
    }

    /// Returns the seed of the bootstrap for these samples at this step, the same for every model.
    pub(crate) fn seed(&self, of_run: Seed) -> Seed {
        of_run.child(self.step).child(self.split as u64)
    }
}

impl EvalSet {
    /// Returns the precedence of the set: a run is evaluated on the one with the highest number.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Labelled => 0,
            Self::OutOfFold => 1,
            Self::Validation => 2,
            Self::Test => 3,
        }
    }

    /// Returns its name in files and tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfFold => "out-of-fold",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Labelled => "labelled",
        }
    }
}

impl EvalModel {
    /// Returns its name in files and tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ema => "ema",
            Self::Live => "live",
        }
    }
}
