//! What came of a run: `result.json`, beside the weights in `model.safetensors`.

use calmix_io::class_names;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::{Scaling, Uncalibrated};
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::Estimate;
use calmix_recipe::Selection;
use serde::{Deserialize, Serialize};

use crate::events::Finished;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// After how many steps the model was what it is.
    pub step: u64,
    /// The rule that chose it.
    pub selection: Selection,
    /// The names of the classes, in the order of the logits.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// The temperature that its logits are divided by, where one could be fitted. `model.json` has every kind of map.
    pub scaling: Option<Scaling>,
    /// Why there is no map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncalibrated: Option<Uncalibrated>,
    /// How good the model is, before and after calibration, split by split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<Evaluation>,
    /// The heads of a run on frozen features, where it trained more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<HeadChoice>,
    /// The metrics by every rule.
    pub finished: Finished,
}

/// The heads that were trained on the same frozen features and the same labels, and which of them is the model: that of the
/// recipe, unless labels that no head saw are likelier by the other by more than a standard error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadChoice {
    /// Which labels chose: those out of fold, or those of the dataset's validation split.
    pub chosen_on: EvalSet,
    /// The NLL of the recipe's head minus that of the other on these labels, label by label, with its interval; none where
    /// there are too few labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll_difference: Option<Estimate>,
    /// Every head, that of the recipe first.
    pub candidates: Vec<HeadCandidate>,
}

/// Which of the heads of a run on frozen features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadName {
    /// The one of the recipe, whether the run kept it or not.
    Recipe,
    /// The one that was trained on the labels alone.
    LabelsAlone,
}

impl HeadChoice {
    /// The head that is the model.
    pub fn kept(&self) -> Option<HeadName> {
        self.candidates.iter().find(|candidate| candidate.kept).map(|candidate| candidate.name)
    }
}

impl HeadName {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recipe => "recipe",
            Self::LabelsAlone => "labels-alone",
        }
    }

    /// Whose metrics a run has that kept it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Recipe => "the recipe's head",
            Self::LabelsAlone => "the head of the labels alone",
        }
    }
}

/// What is known of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadCandidate {
    /// Which one.
    pub name: HeadName,
    /// Whether it is the model.
    pub kept: bool,
    /// The mean NLL of the labels that chose, each by a head and a calibrator that did not see it.
    pub nll: Option<f64>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// Its metrics, split by split.
    pub evaluations: Vec<Evaluation>,
}
