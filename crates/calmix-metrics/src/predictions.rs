//! The predictions of a network for a split, with their labels.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use crate::error::CalibrationError;

/// Logits and labels of every sample of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// How many updates the network had seen.
    pub step: u64,
    /// Of which split.
    pub split: EvalSet,
    /// Of which weights.
    pub model: EvalModel,
    /// The names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// The samples.
    pub ids: Vec<u64>,
    /// Their true classes.
    pub labels: Vec<u32>,
    /// One row of logits per sample.
    pub logits: Vec<f32>,
}

/// A part of the data whose labels are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalSet {
    /// Held-out labels: they may choose a model or fit a temperature.
    Validation,
    /// Labels that choose nothing.
    Test,
    /// The labels that training sees. Their metrics say nothing about other samples; where no labels can be held
    /// out, a temperature is fitted here.
    Labelled,
    /// The labels of a head on frozen features, each by a head that was trained without it.
    OutOfFold,
}

/// Which weights were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalModel {
    /// The exponential moving average of the weights.
    Ema,
    /// The weights as they are trained.
    Live,
}

impl Predictions {
    /// The logits as a matrix.
    ///
    /// # Errors
    /// If there is not one row of as many logits as classes for every label.
    pub fn matrix(&self) -> Result<Matrix<'_>, CalibrationError> {
        self.shaped(&self.logits)
    }

    /// Other logits of the same samples as a matrix.
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix).
    pub fn shaped<'a>(&self, logits: &'a [f32]) -> Result<Matrix<'a>, CalibrationError> {
        let (rows, width) = (self.labels.len(), self.classes.len());
        Matrix::new(logits, rows, width).map_err(|shape| CalibrationError::Length {
            what: "logits",
            expected: rows.saturating_mul(width),
            got: shape.got,
        })
    }

    /// The seed of the replicates of these samples at this step, whichever the model.
    pub(crate) fn seed(&self, of_run: Seed) -> Seed {
        of_run.child(self.step).child(self.split as u64)
    }
}

impl EvalSet {
    /// Which of several sets a run is evaluated by: the one with the highest number.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Labelled => 0,
            Self::OutOfFold => 1,
            Self::Validation => 2,
            Self::Test => 3,
        }
    }

    /// Its name in files and tags.
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
    /// Its name in files and tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ema => "ema",
            Self::Live => "live",
        }
    }
}
