//! FlexMatch (Zhang et al. 2021): a threshold per class that adapts to how well the class is learned.
//!
//! A sample is *selected* for class c if its last prediction with confidence ≥ τ (the fixed τ) was c. The
//! number of samples selected for a class estimates how well it is learned. Other implementations recount all samples in
//! every step; here each batch updates the histogram incrementally, in O(batch) and in whole numbers, so that any number
//! of processes gives the same thresholds.

use serde::{Deserialize, Serialize};

use super::labels::{PseudoLabels, hard_labels};
use crate::matrix::Matrix;
use crate::settings::limit::SHARE;
use crate::settings::{choice, section};
use crate::softmax::{argmax, confidence};

section! {
    /// FlexMatch's settings.
    FlexMatch {
        /// τ: the minimum confidence of a sample that counts as learned, and the highest threshold of a class.
        fixed threshold: f64 = 0.95, SHARE;
        /// The function from how well a class is learned (β) to its threshold.
        fixed mapping: Mapping = Mapping::Convex;
        /// Whether the normaliser includes samples without a confident label (`thresh_warmup` in USB and TorchSSL).
        fixed warmup: bool = true;
    }
}

impl Copy for FlexMatch {}

choice! {
    /// M(β): the share of τ that a class's threshold takes. All have M(1) = 1; only the convex one has M(0) = 0.
    Mapping {
        /// β/(2 − β), as in FlexMatch.
        Convex = "convex",
        /// (β + 1)/2.
        Linear = "linear",
        /// 1/(2 − β).
        LowLimit = "low-limit",
        /// (ln(β + 1) + ½)/(ln 2 + ½).
        Concave = "concave",
    }
}

impl Mapping {
    /// Computes M(β).
    pub fn apply(self, beta: f64) -> f64 {
        match self {
            Self::Convex => beta / (2.0 - beta),
            Self::Linear => f64::midpoint(beta, 1.0),
            Self::LowLimit => 1.0 / (2.0 - beta),
            Self::Concave => (libm::log(beta + 1.0) + 0.5) / (std::f64::consts::LN_2 + 0.5),
        }
    }
}

/// The number of samples selected for each class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlexState {
    /// σ_c: the number of samples whose last confident label was c.
    pub selected: Vec<u64>,
    /// The number of samples that have never had a confident label.
    pub unselected: u64,
}

impl FlexState {
    /// Returns the initial state, with no sample selected.
    pub fn new(classes: usize, samples: u64) -> Self {
        Self { selected: vec![0; classes], unselected: samples }
    }

    /// Adds `change[c]` to the count of each class c, in whole numbers, and subtracts the sum from the unselected samples.
    pub(crate) fn update(&mut self, change: &[f32]) {
        let shift = |count: u64, by: f32| count.saturating_add_signed(by as i64);
        for (count, &by) in self.selected.iter_mut().zip(change) {
            *count = shift(*count, by);
        }
        self.unselected = shift(self.unselected, -change.iter().sum::<f32>());
    }
}

impl FlexMatch {
    /// Computes how well each class is learned, β_c = σ_c / max(max σ, σ₋₁ with warm-up); zero before any selection.
    pub fn learning_status(&self, state: &FlexState) -> Vec<f64> {
        let largest = state.selected.iter().copied().max().unwrap_or(0);
        let normaliser = if self.warmup { largest.max(state.unselected) } else { largest };
        state.selected.iter().map(|&count| count as f64 / normaliser.max(1) as f64).collect()
    }

    /// Computes the threshold of each class, T_c = τ·M(β_c).
    pub fn thresholds(&self, state: &FlexState) -> Vec<f64> {
        self.learning_status(state)
            .into_iter()
            .map(|beta| f64::from(self.threshold as f32) * self.mapping.apply(beta))
            .collect()
    }

    /// Returns the class that a prediction selects its sample for; `None` if its confidence is below the fixed τ.
    pub fn selects(&self, logits: &[f32]) -> Option<u32> {
        (confidence(logits) >= self.threshold as f32).then(|| argmax(logits) as u32)
    }

    /// Returns the labels and weights (0 or 1) of an unlabelled batch, with the thresholds of earlier steps. The samples
    /// that this batch selects enter the histogram with the step's [`Feedback`](crate::method::feedback::Feedback).
    pub fn pseudo_label(&self, logits: Matrix<'_>, state: &FlexState) -> PseudoLabels {
        let thresholds = self.thresholds(state);
        let labels = hard_labels(logits);
        let weight = |(&label, row)| {
            f32::from(thresholds.get(label as usize).is_some_and(|&t| confidence(row) >= t as f32))
        };
        let weights = labels.iter().zip(logits.iter()).map(weight).collect();
        PseudoLabels::new(labels, weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    /// A worked example, computed independently.
    #[test]
    fn thresholds_of_ten_samples() {
        let rule = FlexMatch::default();
        let state = FlexState { selected: vec![4, 2, 1], unselected: 3 };
        assert!(close(&rule.learning_status(&state), &[1.0, 0.5, 0.25]));
        assert!(close(&rule.thresholds(&state), &[0.95, 0.316_667, 0.135_714]));
        let early = FlexState { selected: vec![2, 1, 0], unselected: 7 };
        assert!(close(&rule.learning_status(&early), &[0.285_714, 0.142_857, 0.0]));
        assert!(close(&rule.thresholds(&early), &[0.158_333, 0.073_077, 0.0]));
        let no_warmup = FlexMatch { warmup: false, ..rule };
        assert!(close(&no_warmup.learning_status(&early), &[1.0, 0.5, 0.0]));
        assert!(close(&no_warmup.learning_status(&FlexState::new(3, 10)), &[0.0; 3]));
    }

    #[test]
    fn mappings_meet_at_one() {
        for mapping in [Mapping::Convex, Mapping::Linear, Mapping::LowLimit, Mapping::Concave] {
            assert!((mapping.apply(1.0) - 1.0).abs() < 1e-15, "{mapping:?}");
        }
        let at_half =
            [Mapping::Convex, Mapping::Linear, Mapping::LowLimit, Mapping::Concave].map(|m| m.apply(0.5));
        assert!(close(&at_half, &[1.0 / 3.0, 0.75, 2.0 / 3.0, 0.758_888]), "{at_half:?}");
    }

    #[test]
    fn every_sample_counts_at_the_start_and_selection_uses_the_fixed_threshold() {
        let rule = FlexMatch::default();
        let mut state = FlexState::new(2, 3);
        let logits = [9.0, 0.0, 0.1, 0.0, 0.0, 0.2];
        let batch = Matrix::new(&logits, 3, 2).unwrap();
        assert_eq!(rule.pseudo_label(batch, &state).weights, [1.0; 3], "all thresholds are zero at step 0");
        let selected: Vec<_> = batch.iter().map(|row| rule.selects(row)).collect();
        assert_eq!(selected, [Some(0), None, None]);
        state.update(&[1.0, 0.0]);
        assert_eq!(state, FlexState { selected: vec![1, 0], unselected: 2 });
        // A later confident prediction overwrites: the sample moves to class 1.
        state.update(&[-1.0, 1.0]);
        assert_eq!(state, FlexState { selected: vec![0, 1], unselected: 2 });
    }
}
