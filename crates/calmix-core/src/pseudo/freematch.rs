//! FreeMatch (Wang et al. 2023): a global threshold and one per class, both adapting to the predictions, and a
//! fairness term that keeps the predictions of selected rows from collapsing into few classes.

use serde::{Deserialize, Serialize};

use super::labels::{PseudoLabels, hard_labels};
use super::sums::{BatchSums, Sums};
use crate::matrix::Matrix;
use crate::settings::limit::{UNIT_INTERVAL, from};
use crate::settings::section;
use crate::softmax::confidence;

/// The largest global threshold with [`FreeMatch::clip`] (USB's value).
const MAX_THRESHOLD: f64 = 0.95;

section! {
    /// FreeMatch's settings.
    FreeMatch {
        /// The momentum of the running statistics.
        fixed momentum: f64 = 0.999, UNIT_INTERVAL;
        /// Whether to limit the global threshold to 0.95; USB does this on SVHN only.
        fixed clip: bool = false;
        /// The weight of the fairness term. The published configurations use 0.001; the code's own default is 0.01.
        fixed fairness: f64 = 0.001, from(0.0);
    }
}

impl Copy for FreeMatch {}

/// FreeMatch's running statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeState {
    /// τ_t: running mean of the confidence, the global threshold.
    pub threshold: f64,
    /// p̃_t: running class marginal of the predictions.
    pub marginal: Vec<f64>,
    /// h̃_t: running histogram of the pseudo-labels.
    pub histogram: Vec<f64>,
}

impl FreeState {
    /// Returns the initial state: 1/C everywhere.
    pub fn new(classes: usize) -> Self {
        let uniform = 1.0 / classes.max(1) as f64;
        Self { threshold: uniform, marginal: vec![uniform; classes], histogram: vec![uniform; classes] }
    }

    /// Computes the threshold of each class, τ_t(c) = τ_t·p̃_t(c)/max p̃_t.
    pub fn thresholds(&self) -> Vec<f64> {
        let largest = self.marginal.iter().copied().fold(0.0, f64::max);
        self.marginal.iter().map(|p| self.threshold * (p / largest)).collect()
    }

    /// Computes the target of the fairness term, p̃_t/h̃_t normalised. A class that is absent from the histogram gets zero.
    pub fn fairness_target(&self) -> Vec<f32> {
        let ratio = |(p, h): (&f64, &f64)| if *h > 0.0 { p / h } else { 0.0 };
        let ratios: Vec<f64> = self.marginal.iter().zip(&self.histogram).map(ratio).collect();
        let sum: f64 = ratios.iter().sum();
        ratios.iter().map(|ratio| if sum > 0.0 { (ratio / sum) as f32 } else { 0.0 }).collect()
    }
}

impl FreeMatch {
    /// Returns the labels and weights of a group's unlabelled batch. The statistics are updated with the step's `sums`
    /// first, so the thresholds include them.
    pub fn pseudo_label(&self, unlabelled: Matrix<'_>, sums: &Sums, state: &mut FreeState) -> PseudoLabels {
        self.update(&sums.unlabelled, state);
        let (labels, thresholds) = (hard_labels(unlabelled), state.thresholds());
        let selected = |(row, &label): (&[f32], &u32)| {
            f32::from(u8::from(f64::from(confidence(row)) >= thresholds[label as usize]))
        };
        let weights = unlabelled.iter().zip(&labels).map(selected).collect();
        PseudoLabels { labels, weights, fairness_target: state.fairness_target() }
    }

    fn update(&self, sums: &BatchSums, state: &mut FreeState) {
        let Some(mean) = sums.mean() else { return };
        let keep = |running: f64, new: f64| self.momentum * running + (1.0 - self.momentum) * new;
        state.threshold = keep(state.threshold, sums.confidence / sums.rows);
        if self.clip {
            state.threshold = state.threshold.min(MAX_THRESHOLD);
        }
        for (running, new) in state.marginal.iter_mut().zip(mean) {
            *running = keep(*running, new);
        }
        for (running, count) in state.histogram.iter_mut().zip(&sums.labels) {
            *running = keep(*running, count / sums.rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo::Base;

    fn label(rule: FreeMatch, batch: Matrix<'_>, state: &mut FreeState) -> PseudoLabels {
        let none = Matrix::new(&[], 0, batch.width()).unwrap();
        rule.pseudo_label(batch, &Base::FreeMatch(rule).sums(none, batch), state)
    }

    /// A worked example: two rows of (3/4, 1/4) and (1/2, 1/2), half of the statistics kept.
    #[test]
    fn thresholds_are_updated_before_the_mask() {
        let z = [3.0_f32.ln(), 0.0, 0.0, 0.0];
        let mut state = FreeState::new(2);
        let rule = FreeMatch { momentum: 0.5, ..FreeMatch::default() };
        let pseudo = label(rule, Matrix::new(&z, 2, 2).unwrap(), &mut state);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-7, "{a} is not {b}");
        close(state.threshold, 0.5 * 0.5 + 0.5 * 0.625);
        close(state.marginal[0], 0.5 * 0.5 + 0.5 * 0.625);
        assert_eq!(state.histogram, [0.75, 0.25], "both rows are of class 0");
        close(state.thresholds()[1], 0.5625 * 0.4375 / 0.5625);
        assert_eq!((pseudo.labels, pseudo.weights), (vec![0, 0], vec![1.0, 0.0]));
        // 0.5625/0.75 and 0.4375/0.25.
        close(f64::from(pseudo.fairness_target[0]), 0.75 / 2.5);
    }

    #[test]
    fn the_clip_keeps_the_global_threshold_down() {
        let (z, sure) = ([50.0, 0.0], FreeState { threshold: 0.99, ..FreeState::new(2) });
        for (clip, expected) in [(true, 0.95), (false, 0.990_01)] {
            let mut state = sure.clone();
            label(FreeMatch { clip, ..FreeMatch::default() }, Matrix::new(&z, 1, 2).unwrap(), &mut state);
            assert!((state.threshold - expected).abs() < 1e-9, "{}", state.threshold);
        }
    }

    #[test]
    fn empty_batch_keeps_the_state() {
        let mut state = FreeState::new(2);
        let pseudo = label(FreeMatch::default(), Matrix::new(&[], 0, 2).unwrap(), &mut state);
        assert_eq!((pseudo.labels.len(), &state), (0, &FreeState::new(2)));
        state.histogram = vec![1.0, 0.0];
        assert_eq!(state.fairness_target(), [1.0, 0.0], "a class that was never predicted has no share");
    }
}
