//! What came of a run: `result.json`, beside the weights in `model.safetensors`.

use calmix_core::class_names;
use serde::{Deserialize, Serialize};

use crate::calibration_map::Uncalibrated;
use crate::evaluate::{Scaling, Selection};
use crate::events::{Evaluation, Finished};

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
    /// The figures by every rule.
    pub finished: Finished,
}
