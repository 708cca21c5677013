//! A comparison of a model's confidence with the votes of several annotators on the same images.
//!
//! CIFAR-10H (Peterson, Battleday, Griffiths, Russakovsky: "Human uncertainty makes classification more robust", ICCV 2019) has
//! about fifty votes per image. A model that is as uncertain as the annotators has a low cross-entropy with their votes, and is
//! less confident where they disagree.

use calmix_core::matrix::Matrix;
use calmix_core::softmax::confidence;

use crate::checked;
use crate::error::MetricsError;
use crate::exponential::negative_log_likelihood;

/// Metrics of a model against the votes of annotators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoteMetrics {
    /// The number of images with votes.
    pub samples: usize,
    /// The mean cross-entropy of the model's probabilities with the votes, in nats.
    pub cross_entropy: f64,
    /// The mean entropy of the votes, in nats: the cross-entropy of a model that predicts the shares of the votes.
    pub entropy: f64,
    /// Spearman's rank correlation of the model's confidence with the share of the votes for the first class of an image:
    /// positive if the model is less confident where annotators disagree. `None` if either is constant over all images.
    pub correlation: Option<f64>,
}

/// Compares logits at a temperature with `votes`, a row of counts for each image. Images without votes are left out.
///
/// ```
/// use calmix_core::matrix::Matrix;
/// use calmix_metrics::measure::vote_metrics;
///
/// let logits = Matrix::new(&[4.0, 0.0, 1.0, 0.0, 0.5, 0.0], 3, 2)?;
/// let votes = Matrix::new(&[50.0, 0.0, 40.0, 10.0, 30.0, 20.0], 3, 2)?;
/// let metrics = vote_metrics(logits, votes, 1.0)?;
/// assert_eq!((metrics.samples, metrics.correlation), (3, Some(1.0)));
/// assert!(metrics.cross_entropy > metrics.entropy);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the shapes differ, a logit is not finite, a count is negative, or the temperature is not positive.
pub fn vote_metrics(
    logits: Matrix<'_>,
    votes: Matrix<'_>,
    temperature: f64,
) -> Result<VoteMetrics, MetricsError> {
    checked::length("rows of votes", logits.rows(), votes.rows())?;
    checked::length("classes of votes", logits.width(), votes.width())?;
    checked::logits(logits, &vec![0; logits.rows()])?;
    checked::temperature(temperature)?;
    let counts: Vec<f64> = votes.data().iter().map(|&count| f64::from(count)).collect();
    checked::values("count of vote", &counts, "zero or more", |count| count >= 0.0 && count.is_finite())?;
    let mut cross_entropy = 0.0;
    let mut entropy = 0.0;
    let mut confidences = Vec::new();
    let mut agreement = Vec::new();
    let mut scaled = vec![0.0; logits.width()];
    for (row, counts) in logits.iter().zip(votes.iter()) {
        let total: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        if total <= 0.0 {
            continue;
        }
        let mut largest = 0.0_f64;
        for (class, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let share = f64::from(count) / total;
            cross_entropy += share * negative_log_likelihood(row, class, temperature);
            entropy -= share * libm::log(share);
            largest = largest.max(share);
        }
        for (scaled, &logit) in scaled.iter_mut().zip(row) {
            *scaled = (f64::from(logit) / temperature) as f32;
        }
        confidences.push(f64::from(confidence(&scaled)));
        agreement.push(largest);
    }
    let samples = confidences.len();
    let mean = |sum: f64| sum / samples.max(1) as f64;
    let correlation = correlation(&ranks(&confidences), &ranks(&agreement));
    Ok(VoteMetrics { samples, cross_entropy: mean(cross_entropy), entropy: mean(entropy), correlation })
}

/// Ranks numbers from zero; equal ones share their mean rank.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut first = 0;
    for run in order.chunk_by(|&a, &b| numbers[a] == numbers[b]) {
        let mean = first as f64 + 0.5 * (run.len() - 1) as f64;
        for &at in run {
            ranks[at] = mean;
        }
        first += run.len();
    }
    ranks
}

/// Computes Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let mean_a = mean(a);
    let mean_b = mean(b);
    let mut ab = 0.0;
    let mut aa = 0.0;
    let mut bb = 0.0;
    for (a, b) in a.iter().zip(b) {
        let a = a - mean_a;
        let b = b - mean_b;
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanimous_votes_are_labels() {
        let logits = Matrix::new(&[2.0, 0.0, -1.0, 0.0, 1.0, 3.0], 2, 3).unwrap();
        let votes = Matrix::new(&[7.0, 0.0, 0.0, 0.0, 0.0, 9.0], 2, 3).unwrap();
        let metrics = vote_metrics(logits, votes, 1.5).unwrap();
        let nll = super::super::nll_from_logits(logits, &[0, 2], 1.5).unwrap();
        assert!((metrics.cross_entropy - nll).abs() < 1e-12);
        assert_eq!((metrics.entropy, metrics.correlation), (0.0, None));
    }

    #[test]
    fn images_without_votes_are_left_out_and_ties_share_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        // scipy.stats.spearmanr([1, 2, 3, 4], [2, 1, 4, 3]).statistic
        let found = correlation(&ranks(&[1.0, 2.0, 3.0, 4.0]), &ranks(&[2.0, 1.0, 4.0, 3.0])).unwrap();
        assert!((found - 0.6).abs() < 1e-12);
        let logits = Matrix::new(&[0.0; 4], 2, 2).unwrap();
        let votes = Matrix::new(&[0.0, 0.0, 1.0, 1.0], 2, 2).unwrap();
        let metrics = vote_metrics(logits, votes, 1.0).unwrap();
        assert_eq!(metrics.samples, 1);
        assert!((metrics.cross_entropy - metrics.entropy).abs() < 1e-12);
        assert!(vote_metrics(logits, Matrix::new(&[-1.0; 4], 2, 2).unwrap(), 1.0).is_err());
        assert!(vote_metrics(logits, Matrix::new(&[1.0; 2], 1, 2).unwrap(), 1.0).is_err());
    }
}
