//! How good the network was on one split at one step.

use serde::{Deserialize, Serialize};

use crate::calibrator::any_calibrator::CalibratorKind;
use crate::calibrator::temperature::Temperature;
use crate::fitted_calibrator::FittedOn;
use crate::measure::{Edges, ReliabilityBin};
use crate::metrics::{Intervals, Metrics};
use crate::predictions::{EvalModel, EvalSet};

/// The metrics of one model on one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// How many updates had been made.
    pub step: u64,
    /// On what.
    pub split: EvalSet,
    /// Of what.
    pub model: EvalModel,
    /// On how many samples.
    pub samples: u64,
    /// Corrupt samples that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// To which bin a confidence on an edge belongs, in every metric that bins by width.
    pub edges: Edges,
    /// What the network's own confidence is worth.
    pub metrics: Metrics,
    /// The share of each class's samples that is right, in the order of the classes; none for a class without samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// The 15 bins of equal width of a reliability diagram, the empty ones too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<ReliabilityBin>,
    /// How sure that is; only at the end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// The same with a fitted map, where one could be fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibrated>,
}

/// Which labels evaluate a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatedBy {
    /// Labels that did not fit it.
    OtherLabels,
    /// The labels that fitted it, each by a map of the same kind that was fitted without it.
    CrossFit,
}

/// Metrics with a fitted map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The kind of map.
    pub kind: CalibratorKind,
    /// The temperature, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// On what it was fitted.
    pub fitted_on: FittedOn,
    /// On how many samples it was fitted.
    pub fitted_samples: u64,
    /// Which labels evaluate it here.
    pub evaluated_by: EvaluatedBy,
    /// What the calibrated confidence is worth.
    pub metrics: Metrics,
    /// The share of each class's samples that is right, where the map may change which class wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// Its 15 bins of equal width.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<ReliabilityBin>,
    /// How sure that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
}

impl Evaluation {
    /// The same without its lists, which grow with the classes: what a run keeps of every evaluation.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        (self.class_accuracy, self.bins) = (Vec::new(), Vec::new());
        if let Some(calibrated) = &mut self.calibrated {
            (calibrated.class_accuracy, calibrated.bins) = (Vec::new(), Vec::new());
        }
        self
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}
