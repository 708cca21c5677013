//! The losses and statistics of one update of the network.

use std::collections::BTreeMap;

use calmix_core::loss::{LossKind, LossTerm};
use calmix_metrics::margins::Margins;
use calmix_metrics::pseudo_labels::{ImpurityOf, MarginAuroc, PseudoLabelMetrics};
use serde::{Deserialize, Deserializer, Serialize};

/// One update of the network.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    /// The number of updates so far, including this one.
    pub step: u64,
    /// The learning rate of this update.
    pub learning_rate: f64,
    /// The loss and its parts.
    pub loss: Loss,
    /// The Euclidean norm of the gradient, before clipping.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub gradient_norm: Option<f32>,
    /// The mean weight of the unlabelled samples, which is one minus the mask rate if weights are 0 or 1. `None` if there
    /// are no unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// The weighted share of wrong pseudo-labels in all steps since the previous event, among the samples that
    /// [`PseudoLabelMetrics`] evaluates. `None` if no true class is known or no sample was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impurity: Option<f64>,
    /// The share of wrong pseudo-labels among the samples in mixup, in all steps since the previous event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impurity_of: Option<ImpurityOf>,
    /// How well margins find wrong pseudo-labels, in all steps since the previous event; `None` if no true class is known or
    /// pairs are not guided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_auroc: Option<MarginAuroc>,
    /// The quality of the pseudo-labels in all steps since the previous event; `None` if no true class is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo: Option<PseudoLabelMetrics>,
    /// The mean margins of the samples, if the method uses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margins>,
    /// The number of mixtures in the batch; `None` before the mixup term starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixes: Option<u64>,
    /// The number of corrupt samples that were replaced; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// The number of steps since the previous event, including this one, whose update was skipped because the scaled
    /// gradient overflowed in f16; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflows: Option<u64>,
}

/// The loss and its terms, each with its weight in the sum.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The sum of all terms.
    #[serde(deserialize_with = "or_nan")]
    pub total: f32,
    /// The loss of the labelled samples.
    #[serde(deserialize_with = "or_nan")]
    pub labelled: f32,
    /// The loss of the unlabelled samples against their pseudo-labels.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub unlabelled: Option<f32>,
    /// The loss of the mixtures.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub mix: Option<f32>,
    /// Further terms of the method by name: `fairness`, `logit_distance`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub further: BTreeMap<String, f32>,
}

impl Loss {
    /// Computes the loss of a step from the unweighted value of each term.
    pub fn of<'a>(
        total: f64,
        terms: impl IntoIterator<Item = (&'a LossTerm, &'a f64)>,
        has_unlabelled: bool,
        has_mixtures: bool,
    ) -> Self {
        let mut loss = Self { total: total as f32, ..Self::default() };
        for (LossTerm { kind, weight }, value) in terms {
            let value = (weight * value) as f32;
            match kind {
                LossKind::Labelled => loss.labelled = value,
                LossKind::Unlabelled => loss.unlabelled = Some(value).filter(|_| has_unlabelled),
                LossKind::Mixup(_) => loss.mix = Some(value).filter(|_| has_mixtures),
                further => {
                    loss.further.insert(further.name().replace(' ', "_"), value);
                }
            }
        }
        loss
    }
}

impl Step {
    /// Makes an update with only its loss; the other fields are empty.
    pub fn new(step: u64, loss: Loss) -> Self {
        Self { step, loss, ..Self::default() }
    }
}

/// Reads a number; `null` becomes NaN, since JSON has no non-finite numbers.
fn or_nan<'de, D, F>(from: D) -> Result<F, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de> + From<f32>,
{
    Ok(Option::deserialize(from)?.unwrap_or_else(|| f32::NAN.into()))
}

/// Reads an optional field that is present: `null` is a measured value that is not finite.
fn present<'de, D, F>(from: D) -> Result<Option<F>, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de> + From<f32>,
{
    or_nan(from).map(Some)
}
