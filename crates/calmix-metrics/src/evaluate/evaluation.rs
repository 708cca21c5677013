//! The evaluation of a network on one split at one step.

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
    /// The number of training steps before the evaluation.
    pub step: u64,
    /// The evaluated split.
    pub split: EvalSet,
    /// The evaluated weights.
    pub model: EvalModel,
    /// The number of evaluated samples.
    pub samples: u64,
    /// The number of [groups](crate::groups) of these samples; `None` if each is a group of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The number of corrupt samples that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// The bin to which a confidence on an edge belongs, in every metric with bins of equal width.
    pub edges: Edges,
    /// The metrics of the network without calibration.
    pub metrics: Metrics,
    /// The accuracy of each class, in the order of the classes; `None` for a class without samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// The 15 bins of equal width of a reliability diagram, including empty ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<ReliabilityBin>,
    /// The confidence intervals of the metrics; `None` except at the end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// The metrics with a fitted calibrator; `None` if none could be fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibrated>,
}

/// The labels on which a calibrator is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatedBy {
    /// Labels that did not fit it.
    OtherLabels,
    /// The labels that fitted it, each with a calibrator of the same kind fitted without it.
    CrossFit,
}

/// Metrics with a fitted calibrator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The kind of calibrator.
    pub kind: CalibratorKind,
    /// The temperature; `None` for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The labels that it was fitted on.
    pub fitted_on: FittedOn,
    /// The number of labels that it was fitted on.
    pub fitted_samples: u64,
    /// The labels on which it is evaluated here.
    pub evaluated_by: EvaluatedBy,
    /// The metrics after calibration.
    pub metrics: Metrics,
    /// The accuracy of each class; empty if the calibrator cannot change the predicted class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// The 15 bins of equal width of its reliability diagram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<ReliabilityBin>,
    /// The confidence intervals of the metrics; `None` except at the end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
}

impl Evaluation {
    /// Returns the number of independent observations: that of the groups, or of the samples.
    pub fn observations(&self) -> u64 {
        self.groups.unwrap_or(self.samples)
    }

    /// Removes the lists, which grow with the classes: a run stores the rest for every evaluation.
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
