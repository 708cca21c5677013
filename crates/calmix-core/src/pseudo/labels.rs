//! Pseudo-labels and their weights in the loss.

use std::ops::Range;

use crate::matrix::Matrix;
use crate::softmax::argmax;

/// A hard label and a weight for each unlabelled row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PseudoLabels {
    /// ŷ = argmax of the weak view's logits.
    pub labels: Vec<u32>,
    /// The weight of each row in the unlabelled loss, in [0, 1].
    pub weights: Vec<f32>,
    /// The target of FreeMatch's fairness term, one number per class; empty for other algorithms.
    pub fairness_target: Vec<f32>,
}

impl PseudoLabels {
    /// Returns labels and weights without a fairness target.
    pub fn new(labels: Vec<u32>, weights: Vec<f32>) -> Self {
        Self { labels, weights, fairness_target: Vec::new() }
    }

    /// Returns the labels and weights of some rows.
    #[must_use]
    pub fn of_rows(&self, rows: Range<usize>) -> Self {
        Self {
            labels: self.labels.get(rows.clone()).unwrap_or_default().to_vec(),
            weights: self.weights.get(rows).unwrap_or_default().to_vec(),
            ..self.clone()
        }
    }
}

/// Returns the predicted class of each row.
pub(super) fn hard_labels(logits: Matrix<'_>) -> Vec<u32> {
    logits.iter().map(|row| argmax(row) as u32).collect()
}
