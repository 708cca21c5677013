//! SoftMatch (Chen et al. 2023): no threshold; the weight falls off as a Gaussian below the mean confidence.

use serde::{Deserialize, Serialize};

use super::{PseudoLabels, hard_labels};
use crate::lanes;
use crate::matrix::Matrix;
use crate::samples::{SampleState, StateError};
use crate::softmax::softmax_into;

/// Keeps a class that was never predicted from dividing by zero in the alignment (USB's value).
const ALIGNMENT_FLOOR: f64 = 1e-6;

/// SoftMatch's settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoftMatch {
    /// n_σ: how many standard deviations wide the fall-off is.
    pub n_sigma: f64,
    /// m: how much of the running statistics each step keeps.
    pub momentum: f64,
    /// What the mean and the variance of the confidence are taken of.
    pub statistics: Statistics,
    /// What the predictions are aligned to.
    pub target: AlignmentTarget,
    /// Where the running class marginal starts.
    pub marginal_init: MarginalInit,
}

/// What the running mean and variance are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistics {
    /// The probabilities as predicted: SoftMatch's paper and TorchSSL.
    #[default]
    Raw,
    /// The aligned probabilities: USB, and so the code released with CalibrateMix.
    Aligned,
}

/// The class marginal that predictions are aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlignmentTarget {
    /// 1/C each (uniform alignment).
    #[default]
    Uniform,
    /// The running marginal of the predictions on labelled samples.
    Labelled,
}

/// Where the running class marginal starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarginalInit {
    /// The first batch's mean (USB).
    #[default]
    FirstBatch,
    /// 1/C each (TorchSSL).
    Uniform,
}

/// SoftMatch's running statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftState {
    /// μ_t: running mean of the confidence.
    pub mean: f64,
    /// σ²_t: running variance of the confidence.
    pub variance: f64,
    /// Running class marginal of the unlabelled predictions; none before the first batch.
    pub marginal: Option<Vec<f64>>,
    /// Running class marginal of the labelled predictions.
    pub labelled_marginal: Vec<f64>,
}

impl SoftState {
    /// μ = 1/C, σ² = 1, as in both reference codes.
    pub fn new(classes: usize) -> Self {
        let uniform = 1.0 / classes.max(1) as f64;
        Self { mean: uniform, variance: 1.0, marginal: None, labelled_marginal: vec![uniform; classes] }
    }
}

impl Default for SoftMatch {
    fn default() -> Self {
        Self {
            n_sigma: 2.0,
            momentum: 0.999,
            statistics: Statistics::Raw,
            target: AlignmentTarget::Uniform,
            marginal_init: MarginalInit::FirstBatch,
        }
    }
}

impl SoftMatch {
    /// Labels and weights of an unlabelled batch. The statistics take this batch in first; the weights use
    /// them already updated.
    ///
    /// # Errors
    /// If the sums over groups cannot be exchanged.
    pub fn pseudo_label(
        &self,
        labelled: Matrix<'_>,
        unlabelled: Matrix<'_>,
        state: &mut SoftState,
        samples: &mut impl SampleState,
    ) -> Result<PseudoLabels, StateError> {
        let probabilities = probabilities(unlabelled);
        let rows = || probabilities.chunks_exact(unlabelled.width().max(1));

        let mean = mean_over_groups(rows(), unlabelled.width(), samples)?;
        self.update_marginal(mean.as_deref(), state);
        if self.target == AlignmentTarget::Labelled {
            let own = self::probabilities(labelled);
            let rows = own.chunks_exact(labelled.width().max(1));
            if let Some(mean) = mean_over_groups(rows, labelled.width(), samples)? {
                self.blend(&mut state.labelled_marginal, &mean);
            }
        }

        let ratio = self.alignment_ratio(state);
        let aligned: Vec<f64> = rows().map(|p| aligned_confidence(p, &ratio)).collect();
        match self.statistics {
            Statistics::Aligned => self.update_moments(aligned.iter().copied(), state, samples)?,
            Statistics::Raw => self.update_moments(rows().map(largest), state, samples)?,
        }
        let weights = aligned.iter().map(|&q| self.weight(q, state) as f32).collect();
        Ok(PseudoLabels { labels: hard_labels(unlabelled), weights })
    }

    /// w = exp(−min(q − μ, 0)²/(2σ²/n_σ²)): one from the mean upwards.
    pub fn weight(&self, confidence: f64, state: &SoftState) -> f64 {
        let below = (confidence - state.mean).min(0.0);
        if below == 0.0 {
            return 1.0;
        }
        libm::exp(-below * below * self.n_sigma * self.n_sigma / (2.0 * state.variance))
    }

    /// Takes a batch's confidences into μ and σ²; the variance is the unbiased one, and needs two rows.
    fn update_moments(
        &self,
        confidences: impl Iterator<Item = f64>,
        state: &mut SoftState,
        samples: &mut impl SampleState,
    ) -> Result<(), StateError> {
        let mut sums = [0.0; 3];
        for q in confidences {
            sums[0] += 1.0;
            sums[1] += q;
            sums[2] += q * q;
        }
        samples.sum_over_groups(&mut sums)?;
        let [n, sum, squares] = sums;
        if n >= 1.0 {
            state.mean = self.momentum * state.mean + (1.0 - self.momentum) * sum / n;
        }
        if n >= 2.0 {
            let variance = ((squares - sum * sum / n) / (n - 1.0)).max(0.0);
            state.variance = self.momentum * state.variance + (1.0 - self.momentum) * variance;
        }
        Ok(())
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

    /// What each class's probability is multiplied by before it is normalised again.
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

fn probabilities(logits: Matrix<'_>) -> Vec<f32> {
    let mut probabilities = vec![0.0; logits.data().len()];
    for (p, z) in probabilities.chunks_exact_mut(logits.width().max(1)).zip(logits.iter()) {
        softmax_into(z, p);
    }
    probabilities
}

fn largest(probabilities: &[f32]) -> f64 {
    f64::from(lanes::max(probabilities))
}

/// The largest probability after alignment.
fn aligned_confidence(probabilities: &[f32], ratio: &[f32]) -> f64 {
    let (sum, top) = lanes::sum_and_max_of_products(probabilities, ratio);
    if sum > 0.0 { f64::from(top) / sum } else { 0.0 }
}

/// The mean row over all groups of the step; none when there is no row at all.
fn mean_over_groups<'a>(
    rows: impl Iterator<Item = &'a [f32]>,
    classes: usize,
    samples: &mut impl SampleState,
) -> Result<Option<Vec<f64>>, StateError> {
    let mut sums = vec![0.0; classes + 1];
    for row in rows {
        for (sum, &p) in sums.iter_mut().zip(row) {
            *sum += f64::from(p);
        }
        sums[classes] += 1.0;
    }
    samples.sum_over_groups(&mut sums)?;
    let n = sums.pop().unwrap_or(0.0);
    Ok((n > 0.0).then(|| sums.into_iter().map(|sum| sum / n).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::LocalState;

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
        let confidences = [0.3, 0.6, 0.9, 0.95];
        SoftMatch::default()
            .update_moments(confidences.into_iter(), &mut state, &mut LocalState::default())
            .unwrap();
        assert!((state.mean - 0.100_587_5).abs() < 1e-12);
        assert!((state.variance - 0.999_090_625).abs() < 1e-12);
    }

    #[test]
    fn labels_come_from_the_unaligned_probabilities() {
        let logits = [1.0, 0.9, 1.0, 0.9];
        let mut state = SoftState { marginal: Some(vec![0.99, 0.01]), ..SoftState::new(2) };
        let batch = Matrix::new(&logits, 2, 2).unwrap();
        let none = Matrix::new(&[], 0, 2).unwrap();
        let pseudo =
            SoftMatch::default().pseudo_label(none, batch, &mut state, &mut LocalState::default()).unwrap();
        assert_eq!(pseudo.labels, [0, 0], "alignment would prefer class 1");
    }

    #[test]
    fn no_spread_and_no_rows_are_no_trouble() {
        let rule = SoftMatch::default();
        let state = SoftState { mean: 0.8, variance: 0.0, ..SoftState::new(2) };
        assert_eq!((rule.weight(0.8, &state), rule.weight(0.7, &state)), (1.0, 0.0));
        let none = Matrix::new(&[], 0, 2).unwrap();
        let mut fresh = SoftState::new(2);
        let pseudo = rule.pseudo_label(none, none, &mut fresh, &mut LocalState::default()).unwrap();
        assert_eq!((pseudo, fresh), (PseudoLabels::default(), SoftState::new(2)));
    }
}
