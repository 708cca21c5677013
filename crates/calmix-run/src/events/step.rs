//! What one update of the network looked like.

use calmix_core::plan::Difficulty;
use serde::{Deserialize, Serialize};

use super::number;

/// One update of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// How many updates have been made, this one counted.
    pub step: u64,
    /// The learning rate it was made with.
    pub learning_rate: f64,
    /// What was minimised.
    pub loss: Loss,
    /// The Euclidean norm of the gradient, before anything cut it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number::if_there")]
    pub gradient_norm: Option<f32>,
    /// The mean weight of the unlabelled samples: one minus the mask rate where weights are 0 or 1. None where
    /// there are no unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// The share of wrong pseudo-labels by weight; none where no truth is known or nothing was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impurity: Option<f64>,
    /// How easy the samples are, where the method asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margins>,
    /// How many mixtures were learnt from; none before the mixup term begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixes: Option<u64>,
    /// How many corrupt samples others took the place of; none where all could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
}

/// The loss and its parts, each as it enters the sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The sum.
    #[serde(deserialize_with = "number::or_nan")]
    pub total: f32,
    /// Of the labelled samples.
    #[serde(deserialize_with = "number::or_nan")]
    pub labelled: f32,
    /// Of the unlabelled samples at their pseudo-labels.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number::if_there")]
    pub unlabelled: Option<f32>,
    /// Of the mixtures.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number::if_there")]
    pub mix: Option<f32>,
}

/// Mean margins of the halves of a batch: AUM of the labelled, APM of the unlabelled samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// Of the labelled rows.
    pub labelled: EasyHard,
    /// Of the unlabelled rows.
    pub unlabelled: EasyHard,
}

/// The mean of each half; none where it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EasyHard {
    /// Of the easy rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub easy: Option<f64>,
    /// Of the hard rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<f64>,
}

impl Step {
    /// An update of which only the loss is known yet.
    pub fn new(step: u64, loss: Loss) -> Self {
        Self {
            step,
            learning_rate: 0.0,
            loss,
            gradient_norm: None,
            utilisation: None,
            impurity: None,
            margin: None,
            mixes: None,
            skipped: None,
        }
    }
}

impl Margins {
    /// The means of what a plan says about difficulty.
    pub fn of(difficulty: &Difficulty) -> Self {
        let half = |margins: &[f64], rows: &[usize]| mean(rows.iter().filter_map(|&row| margins.get(row)));
        let halves = |margins: &[f64], of: &calmix_core::split::Halves| EasyHard {
            easy: half(margins, &of.easy),
            hard: half(margins, &of.hard),
        };
        Self {
            labelled: halves(&difficulty.aum, &difficulty.labelled),
            unlabelled: halves(&difficulty.apm, &difficulty.unlabelled),
        }
    }
}

fn mean<'a>(numbers: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0_u32);
    for number in numbers {
        sum += number;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}

/// The mean weight of unlabelled rows; none without rows.
pub fn utilisation(weights: &[f32]) -> Option<f64> {
    let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    (!weights.is_empty()).then(|| sum / weights.len() as f64)
}

/// The share of wrong pseudo-labels, by weight, among the rows whose truth is known; none if these weigh nothing.
pub fn impurity(labels: &[u32], weights: &[f32], truth: &[Option<u32>]) -> Option<f64> {
    let (mut used, mut wrong) = (0.0, 0.0);
    for ((&label, &weight), truth) in labels.iter().zip(weights).zip(truth) {
        if let Some(truth) = *truth {
            used += f64::from(weight);
            wrong += if label == truth { 0.0 } else { f64::from(weight) };
        }
    }
    (used > 0.0).then(|| wrong / used)
}

#[cfg(test)]
mod tests {
    use calmix_core::split::Halves;

    use super::*;

    #[test]
    fn only_what_is_used_and_known_can_be_impure() {
        let truth = [Some(1), Some(2), None, Some(3)];
        assert_eq!(impurity(&[1, 0, 9, 9], &[1.0, 0.5, 1.0, 0.0], &truth), Some(0.5 / 1.5));
        assert_eq!(impurity(&[1, 0, 9, 9], &[0.0, 0.0, 1.0, 0.0], &truth), None);
        assert_eq!(utilisation(&[1.0, 0.5, 1.0, 0.0]), Some(0.625));
        assert_eq!(utilisation(&[]), None);
    }

    #[test]
    fn margins_are_means_of_halves() {
        let difficulty = Difficulty {
            aum: vec![1.0, 4.0, 3.0],
            apm: vec![],
            labelled: Halves { easy: vec![1, 2], hard: vec![0] },
            unlabelled: Halves::default(),
        };
        let margins = Margins::of(&difficulty);
        assert_eq!(margins.labelled, EasyHard { easy: Some(3.5), hard: Some(1.0) });
        assert_eq!(margins.unlabelled, EasyHard { easy: None, hard: None });
    }
}
