//! FlexMatch (Zhang et al. 2021): a threshold per class that follows how well the class is learnt.
//!
//! A sample is *selected* for class c when its last prediction with confidence ≥ τ (the fixed τ) was c. The
//! number of samples selected for a class estimates how well it is learnt. The peers recount all samples every
//! step; here the histogram moves by what a batch changes, O(batch), in whole numbers, so that any number of
//! processes gives the same thresholds.

use serde::{Deserialize, Serialize};

use super::{PseudoLabels, hard_labels};
use crate::matrix::Matrix;
use crate::samples::{SampleState, StateError};
use crate::softmax::confidence;

/// FlexMatch's settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlexMatch {
    /// τ: the confidence at which a sample counts as learnt, and the highest threshold of a class.
    pub threshold: f32,
    /// M, from how well a class is learnt to its threshold.
    pub mapping: Mapping,
    /// Whether unselected samples count in the normaliser (`thresh_warmup`, on in the peers).
    pub warmup: bool,
}

/// M(β): the share of τ that a class's threshold takes. All have M(1) = 1; only the convex one has M(0) = 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// β/(2 − β), the paper's.
    #[default]
    Convex,
    /// (β + 1)/2.
    Linear,
    /// 1/(2 − β).
    LowLimit,
    /// (ln(β + 1) + ½)/(ln 2 + ½).
    Concave,
}

impl Mapping {
    /// M(β).
    pub fn of(self, beta: f64) -> f64 {
        match self {
            Self::Convex => beta / (2.0 - beta),
            Self::Linear => f64::midpoint(beta, 1.0),
            Self::LowLimit => 1.0 / (2.0 - beta),
            Self::Concave => (libm::log(beta + 1.0) + 0.5) / (std::f64::consts::LN_2 + 0.5),
        }
    }
}

/// How many samples are selected for each class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlexState {
    /// σ_c: the samples whose last confident label was c.
    pub selected: Vec<u64>,
    /// The samples that have had none.
    pub unselected: u64,
}

impl FlexState {
    /// Nothing selected yet.
    pub fn new(classes: usize, samples: u64) -> Self {
        Self { selected: vec![0; classes], unselected: samples }
    }

    /// Moves the histogram by `change[c]` for class c; the unselected make up for the sum.
    fn apply(&mut self, change: &[f64]) {
        let shift = |count: u64, by: f64| count.saturating_add_signed(by as i64);
        for (count, &by) in self.selected.iter_mut().zip(change) {
            *count = shift(*count, by);
        }
        self.unselected = shift(self.unselected, -change.iter().sum::<f64>());
    }
}

impl Default for FlexMatch {
    fn default() -> Self {
        Self { threshold: 0.95, mapping: Mapping::Convex, warmup: true }
    }
}

impl FlexMatch {
    /// β_c = σ_c / max(max σ, σ₋₁ with warm-up): how well each class is learnt; zero before any selection.
    pub fn learnt(&self, state: &FlexState) -> Vec<f64> {
        let most = state.selected.iter().copied().max().unwrap_or(0);
        let normaliser = if self.warmup { most.max(state.unselected) } else { most };
        state.selected.iter().map(|&count| count as f64 / normaliser.max(1) as f64).collect()
    }

    /// T_c = τ·M(β_c).
    pub fn thresholds(&self, state: &FlexState) -> Vec<f64> {
        self.learnt(state).into_iter().map(|beta| f64::from(self.threshold) * self.mapping.of(beta)).collect()
    }

    /// Labels and weights (0 or 1) of an unlabelled batch, under the thresholds that earlier steps left; then
    /// the histogram takes in what this batch selects.
    ///
    /// # Errors
    /// If the memory of a sample cannot be reached.
    pub fn pseudo_label(
        &self,
        ids: &[u64],
        logits: Matrix<'_>,
        state: &mut FlexState,
        samples: &mut impl SampleState,
    ) -> Result<PseudoLabels, StateError> {
        let labels = hard_labels(logits);
        let confidences: Vec<f32> = logits.iter().map(confidence).collect();
        let thresholds = self.thresholds(state);
        let judged = || labels.iter().copied().zip(confidences.iter().copied());
        let weights = judged()
            .map(|(label, q)| f32::from(thresholds.get(label as usize).is_some_and(|&t| q >= t as f32)))
            .collect();

        let selected: Vec<Option<u32>> =
            judged().map(|(label, q)| (q >= self.threshold).then_some(label)).collect();
        let before = samples.remember_selected(ids, &selected)?;
        let mut change = vec![0.0; state.selected.len()];
        for (new, old) in selected.iter().zip(before) {
            let Some(new) = *new else { continue };
            for (class, by) in [(Some(new), 1.0), (old, -1.0)] {
                if let Some(count) = class.and_then(|c| change.get_mut(c as usize)) {
                    *count += by;
                }
            }
        }
        samples.sum_over_groups(&mut change)?;
        state.apply(&change);
        Ok(PseudoLabels { labels, weights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::LocalState;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    /// A worked example, computed independently.
    #[test]
    fn thresholds_of_ten_samples() {
        let rule = FlexMatch::default();
        let state = FlexState { selected: vec![4, 2, 1], unselected: 3 };
        assert!(close(&rule.learnt(&state), &[1.0, 0.5, 0.25]));
        assert!(close(&rule.thresholds(&state), &[0.95, 0.316_667, 0.135_714]));
        let early = FlexState { selected: vec![2, 1, 0], unselected: 7 };
        assert!(close(&rule.learnt(&early), &[0.285_714, 0.142_857, 0.0]));
        assert!(close(&rule.thresholds(&early), &[0.158_333, 0.073_077, 0.0]));
        let no_warmup = FlexMatch { warmup: false, ..rule };
        assert!(close(&no_warmup.learnt(&early), &[1.0, 0.5, 0.0]));
        assert!(close(&no_warmup.learnt(&FlexState::new(3, 10)), &[0.0; 3]));
    }

    #[test]
    fn mappings_meet_at_one() {
        for mapping in [Mapping::Convex, Mapping::Linear, Mapping::LowLimit, Mapping::Concave] {
            assert!((mapping.of(1.0) - 1.0).abs() < 1e-15, "{mapping:?}");
        }
        let at_half =
            [Mapping::Convex, Mapping::Linear, Mapping::LowLimit, Mapping::Concave].map(|m| m.of(0.5));
        assert!(close(&at_half, &[1.0 / 3.0, 0.75, 2.0 / 3.0, 0.758_888]), "{at_half:?}");
    }

    #[test]
    fn every_sample_counts_at_the_start_and_selection_uses_the_fixed_threshold() {
        let rule = FlexMatch::default();
        let mut state = FlexState::new(2, 3);
        let mut samples = LocalState { selected: Some(vec![-1; 3]), ..LocalState::default() };
        let logits = [9.0, 0.0, 0.1, 0.0, 0.0, 0.2];
        let batch = Matrix::new(&logits, 3, 2).unwrap();
        let pseudo = rule.pseudo_label(&[0, 1, 2], batch, &mut state, &mut samples).unwrap();
        assert_eq!(pseudo.weights, [1.0; 3], "all thresholds are zero at step 0");
        assert_eq!(state, FlexState { selected: vec![1, 0], unselected: 2 });
        // A later confident prediction overwrites: sample 0 moves to class 1.
        let flipped = [0.0, 9.0];
        rule.pseudo_label(&[0], Matrix::new(&flipped, 1, 2).unwrap(), &mut state, &mut samples).unwrap();
        assert_eq!(state, FlexState { selected: vec![0, 1], unselected: 2 });
    }
}
