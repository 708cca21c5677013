//! FixMatch (Sohn et al. 2020): keep a pseudo-label if its confidence reaches a fixed threshold.

use super::labels::{PseudoLabels, hard_labels};
use crate::matrix::Matrix;
use crate::settings::limit::SHARE;
use crate::settings::section;
use crate::softmax::confidence;

section! {
    /// FixMatch's settings.
    FixMatch {
        /// The minimum confidence of a pseudo-label that is used (ω in the paper, τ elsewhere).
        fixed threshold: f64 = 0.95, SHARE;
    }
}

impl Copy for FixMatch {}

impl FixMatch {
    /// Returns the labels and weights (0 or 1) of an unlabelled batch.
    pub fn pseudo_label(&self, logits: Matrix<'_>) -> PseudoLabels {
        let keep = |row: &[f32]| f32::from(confidence(row) >= self.threshold as f32);
        PseudoLabels::new(hard_labels(logits), logits.iter().map(keep).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_itself_is_kept() {
        let logits = [0.0, 0.0, 3.0, 0.0, -1.0, 1.0];
        let batch = Matrix::new(&logits, 3, 2).unwrap();
        let pseudo = FixMatch { threshold: 0.5 }.pseudo_label(batch);
        assert_eq!(pseudo.labels, [0, 0, 1]);
        assert_eq!(pseudo.weights, [1.0, 1.0, 1.0]);
        // σ(3) = 0.9526, σ(2) = 0.8808.
        assert_eq!(FixMatch::default().pseudo_label(batch).weights, [0.0, 1.0, 0.0]);
    }
}
