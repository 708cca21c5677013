//! What came of a run: `result.json`, beside the weights in `model.safetensors`.

use calmix_core::class_names;
use calmix_core::stats::Interval;
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
    /// The one of the recipe, unless labels that no head saw are clearly likelier by the other.
    pub kept: KeptHead,
    /// Out-of-fold NLL of the recipe's head minus that of the other, label by label, with its interval; none where there are
    /// too few labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll_difference: Option<Interval>,
    /// The one of the recipe.
    pub semi_supervised: HeadFigures,
    /// The one that learnt from the labels alone.
    pub supervised: HeadFigures,
}

impl HeadChoice {
    /// Whether the unlabelled images helped, as far as the labels can tell.
    pub fn helped(difference: Option<&Interval>) -> Option<bool> {
        let difference = difference?;
        let is_clear = difference.high < 0.0 || difference.low > 0.0;
        is_clear.then_some(difference.estimate < 0.0)
    }
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

/// What is known of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadFigures {
    /// The mean NLL of the labels, each by a head and a temperature that did not see it.
    pub out_of_fold_nll: Option<f64>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// Its figures, split by split.
    pub evaluations: Vec<Evaluation>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_clear_is_not_said() {
        let helped = |low: f64, high: f64| {
            let estimate = f64::midpoint(low, high);
            HeadChoice::helped(Some(&Interval { n: 40, estimate, low, high, level: 0.95 }))
        };
        assert_eq!(helped(-0.3, -0.1), Some(true));
        assert_eq!(helped(0.1, 0.3), Some(false));
        assert_eq!(helped(-0.1, 0.3), None);
        assert_eq!(helped(-0.3, 0.1), None);
        assert_eq!(HeadChoice::helped(None), None);
    }
}
