//! SoftMatch (Chen et al. 2023): no threshold; the weight decreases as a Gaussian below the mean confidence.

use serde::{Deserialize, Serialize};

use super::labels::{PseudoLabels, hard_labels};
use super::sums::{BatchSums, Sums, probabilities};
use crate::lanes;
use crate::matrix::Matrix;
use crate::settings::limit::{UNIT_INTERVAL, from};
use crate::settings::{choice, section};

/// Prevents a division by zero in the alignment for a class that was never predicted (USB's value).
const ALIGNMENT_FLOOR: f64 = 1e-6;

section! {
    /// SoftMatch's settings.
    SoftMatch {
        /// n_σ: the factor by which the standard deviation of the Gaussian is divided; larger values give a steeper weight.
        fixed n_sigma: f64 = 2.0, from(0.0);
        /// The momentum of the running statistics.
        fixed momentum: f64 = 0.999, UNIT_INTERVAL;
        /// The probabilities over which the mean and the variance of the confidence are computed.
        fixed statistics: Statistics = Statistics::Raw;
        /// The class distribution to which predictions are aligned.
        fixed target: AlignmentTarget = AlignmentTarget::Uniform;
        /// The initial value of the running class distribution.
        fixed marginal_init: MarginalInit = MarginalInit::FirstBatch;
    }
}

impl Copy for SoftMatch {}

choice! {
    /// The probabilities over which the running mean and variance are computed.
    Statistics {
        /// The predicted probabilities, as in SoftMatch's paper and TorchSSL.
        Raw = "raw",
        /// The aligned probabilities, as in USB and the released code.
        Aligned = "aligned",
    }
}

choice! {
    /// The class distribution to which predictions are aligned.
    AlignmentTarget {
        /// 1/C for each class.
        Uniform = "uniform",
        /// The running mean of the predictions on labelled samples.
        Labelled = "labelled",
    }
}

choice! {
    /// The initial value of the running class distribution.
    MarginalInit {
        /// The mean of the first batch, as in USB.
        FirstBatch = "first-batch",
        /// 1/C for each class, as in TorchSSL.
        Uniform = "uniform",
    }
}

/// SoftMatch's running statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftState {
    /// μ_t: running mean of the confidence.
    pub mean: f64,
    /// σ²_t: running variance of the confidence.
    pub variance: f64,
    /// Running class marginal of the unlabelled predictions; `None` before the first batch.
    pub marginal: Option<Vec<f64>>,
    /// Running class marginal of the labelled predictions.
    pub labelled_marginal: Vec<f64>,
}

impl SoftState {
    /// Returns the initial state: μ = 1/C, σ² = 1, as in USB and TorchSSL.
    pub fn new(classes: usize) -> Self {
        let uniform = 1.0 / classes.max(1) as f64;
        Self { mean: uniform, variance: 1.0, marginal: None, labelled_marginal: vec![uniform; classes] }
    }
}

impl SoftMatch {
    /// Returns the labels and weights of a group's unlabelled batch. The statistics are updated with the step's `sums`
    /// first, so the weights include them. [`Statistics::Aligned`] uses only the rows of its own group.
    pub fn pseudo_label(&self, unlabelled: Matrix<'_>, sums: &Sums, state: &mut SoftState) -> PseudoLabels {
        let probabilities = probabilities(unlabelled);
        let rows = || probabilities.chunks_exact(unlabelled.width().max(1));

        self.update_marginal(sums.unlabelled.mean().as_deref(), state);
        if let (AlignmentTarget::Labelled, Some(mean)) = (self.target, sums.labelled.mean()) {
            self.blend(&mut state.labelled_marginal, &mean);
        }

        let ratio = self.alignment_ratio(state);
        let aligned: Vec<f64> = rows().map(|p| aligned_confidence(p, &ratio)).collect();
        match self.statistics {
            Statistics::Raw => self.update_moments(&sums.unlabelled, state),
            Statistics::Aligned => {
                let mut sums = BatchSums::default();
                for &q in &aligned {
                    sums.add_confidence(q);
                }
                self.update_moments(&sums, state);
            }
        }
        let weights = aligned.iter().map(|&q| self.weight(q, state) as f32).collect();
        PseudoLabels::new(hard_labels(unlabelled), weights)
    }

    /// Computes the weight w = exp(−min(q − μ, 0)²/(2σ²/n_σ²)), which is one at or above the mean.
    pub fn weight(&self, confidence: f64, state: &SoftState) -> f64 {
        let below = (confidence - state.mean).min(0.0);
        if below == 0.0 {
            return 1.0;
        }
        libm::exp(-below * below * self.n_sigma * self.n_sigma / (2.0 * state.variance))
    }

    /// Updates μ and σ² with the confidences of a step; the variance is the unbiased one and needs two rows.
    fn update_moments(&self, sums: &BatchSums, state: &mut SoftState) {
        let &BatchSums { rows: n, confidence: sum, squares, .. } = sums;
        if n >= 1.0 {
            state.mean = self.momentum * state.mean + (1.0 - self.momentum) * sum / n;
        }
        if n >= 2.0 {
            let variance = ((squares - sum * sum / n) / (n - 1.0)).max(0.0);
            state.variance = self.momentum * state.variance + (1.0 - self.momentum) * variance;
        }
    }

    fn update_marginal(&self, mean: Option<&[f64]>, state: &mut SoftState) {
        let Some(mean) = mean else { return };
        let mut marginal = match (state.marginal.take(), self.marginal_init) {
            (Some(marginal), _) => marginal,
            (None, MarginalInit::Uniform) => vec![1.0 / mean.len().max(1) as f64; mean.len()],
            (None, MarginalInit::FirstBatch) => mean.to_vec(),
        };
        self.blend(&mut marginal, mean);
        state.marginal = Some(marginal);
    }

    fn blend(&self, running: &mut [f64], mean: &[f64]) {
        for (r, m) in running.iter_mut().zip(mean) {
            *r = self.momentum * *r + (1.0 - self.momentum) * m;
        }
    }

    /// Returns the factor of each class's probability in the alignment, before it is normalised again.
    fn alignment_ratio(&self, state: &SoftState) -> Vec<f32> {
        let classes = state.labelled_marginal.len();
        let uniform = vec![1.0 / classes.max(1) as f64; classes];
        let target = match self.target {
            AlignmentTarget::Uniform => &uniform,
            AlignmentTarget::Labelled => &state.labelled_marginal,
        };
        let marginal = state.marginal.as_ref().unwrap_or(target);
        let ratio = |(t, m): (&f64, &f64)| ((t + ALIGNMENT_FLOOR) / (m + ALIGNMENT_FLOOR)) as f32;
        target.iter().zip(marginal).map(ratio).collect()
    }
}

/// Returns the largest probability after alignment.
fn aligned_confidence(probabilities: &[f32], ratio: &[f32]) -> f64 {
    let (sum, top) = lanes::sum_and_max_of_products(probabilities, ratio);
    if sum > 0.0 { f64::from(top) / sum } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo::Base;

    /// A worked example, computed independently.
    #[test]
    fn weights_fall_off_below_the_mean() {
        let rule = SoftMatch::default();
        let state = SoftState { mean: 0.8, variance: 0.04, ..SoftState::new(10) };
        for (q, expected) in [(0.3, 4e-6), (0.6, 0.135_335), (0.7, 0.606_531), (0.8, 1.0), (0.9, 1.0)] {
            assert!((rule.weight(q, &state) - expected).abs() < 5e-7, "w({q}) = {}", rule.weight(q, &state));
        }
    }

    /// A worked example, computed independently.
    #[test]
    fn one_step_of_the_moments() {
        let mut state = SoftState::new(10);
        let mut sums = BatchSums::default();
        for q in [0.3, 0.6, 0.9, 0.95] {
            sums.add_confidence(q);
        }
        SoftMatch::default().update_moments(&sums, &mut state);
        assert!((state.mean - 0.100_587_5).abs() < 1e-12);
        assert!((state.variance - 0.999_090_625).abs() < 1e-12);
    }

    fn label(batch: Matrix<'_>, state: &mut SoftState) -> PseudoLabels {
        let (rule, none) = (SoftMatch::default(), Matrix::new(&[], 0, 2).unwrap());
        rule.pseudo_label(batch, &Base::SoftMatch(rule).sums(none, batch), state)
    }

    #[test]
    fn labels_come_from_the_unaligned_probabilities() {
        let logits = [1.0, 0.9, 1.0, 0.9];
        let mut state = SoftState { marginal: Some(vec![0.99, 0.01]), ..SoftState::new(2) };
        let pseudo = label(Matrix::new(&logits, 2, 2).unwrap(), &mut state);
        assert_eq!(pseudo.labels, [0, 0], "alignment would prefer class 1");
    }

    #[test]
    fn zero_variance_and_no_rows_stay_finite() {
        let rule = SoftMatch::default();
        let state = SoftState { mean: 0.8, variance: 0.0, ..SoftState::new(2) };
        assert_eq!((rule.weight(0.8, &state), rule.weight(0.7, &state)), (1.0, 0.0));
        let mut fresh = SoftState::new(2);
        let pseudo = label(Matrix::new(&[], 0, 2).unwrap(), &mut fresh);
        assert_eq!((pseudo, fresh), (PseudoLabels::default(), SoftState::new(2)));
    }
}
