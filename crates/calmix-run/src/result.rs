//! What came of a run: `result.json`, beside the weights in `model.safetensors`.

use calmix_core::stats::Interval;
use calmix_io::class_names;
use calmix_recipe::Selection;
use serde::{Deserialize, Serialize};

use crate::calibration_map::Uncalibrated;
use crate::evaluate::Scaling;
use crate::events::{EvalSet, Evaluation, Finished};

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
    /// The two heads of a run on frozen features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<HeadChoice>,
    /// The figures by every rule.
    pub finished: Finished,
}

/// The two heads that were trained on the same frozen features and the same labels, and which of them is the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadChoice {
    /// The one of the recipe, unless labels that no head saw are likelier by the other by more than a standard error.
    pub kept: KeptHead,
    /// Which labels judged both: those out of fold, or those of the dataset's validation split.
    pub judged_on: EvalSet,
    /// The NLL of the recipe's head minus that of the other on these labels, label by label, with its interval; none where
    /// there are too few labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll_difference: Option<Interval>,
    /// The one of the recipe.
    pub semi_supervised: HeadFigures,
    /// The one that learnt from the labels alone.
    pub supervised: HeadFigures,
}

/// Which of two heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptHead {
    /// The one of the recipe.
    SemiSupervised,
    /// The one that learnt from the labels alone.
    Supervised,
}

impl KeptHead {
    /// Whose metrics a run has that kept it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::SemiSupervised => "the recipe's head",
            Self::Supervised => "the head of the labels alone",
        }
    }
}

/// What is known of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadFigures {
    /// The mean NLL of the labels that judged the heads, each by a head and a calibrator that did not see it.
    pub nll: Option<f64>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// Its figures, split by split.
    pub evaluations: Vec<Evaluation>,
}
