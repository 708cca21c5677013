//! The score threshold at or above which a classifier answers, so that its answers have a guaranteed precision.
//!
//! It is found on labels that the model was not trained on, by tests from the highest score down: at the first score where
//! the precision of the answers at or above it is not shown to be high enough, the previous score is the threshold. Each test
//! is Clopper and Pearson's at the same δ. Testing in a fixed order, and no further than the first failure, keeps the whole
//! sequence at δ: no correction for the number of tests is needed, and accuracy need not fall with the score (Angelopoulos,
//! Bates, Candès, Jordan, Lei: "Learn then test", 2021).
//!
//! The order of the images must not depend on the labels of the test. Given the score at which a test ends, the answers
//! above it are then right or wrong like those of new images, independently of each other, which is all that Clopper and
//! Pearson's interval needs. Scores fitted to the same labels break this: an isotonic calibrator puts the edges of its
//! plateaus where the answers happen to be wrong, and a precision that did not hold was then found in 29 of 100 draws instead
//! of 10. Therefore:
//!
//! - A temperature and an isotonic calibrator keep the predicted class, so nothing fitted is needed: the score is
//!   [`log_odds`] of the logits of the network itself. An isotonic calibrator is a non-decreasing function of this score,
//!   but its plateaus hold images on both sides of the threshold. The decision is made on the score, never on the
//!   calibrated confidence.
//! - Vector scaling changes the predicted class, and whether the class of the fitted calibrator is right depends on the
//!   labels that fitted it. Each label is then scored and found right or wrong by the calibrator of its
//!   [cross-fit](crate::calibrator::cross_fit), which was fitted without it.

use calmix_core::lanes;
use calmix_core::softmax::argmax;

use crate::checked;
use crate::error::MetricsError;
use crate::stats::share_at_least;

/// The number of tests: the labels are cut into this many steps by the rank of their score. Each test may end the sequence
/// by chance, so a finer grid leads to fewer answers.
const STEPS: usize = 20;

/// The size of the first test, in multiples of the number of labels that would show the precision if all were right, so that a
/// few may be wrong; at most two fifths of the labels.
const FIRST: usize = 3;

/// The score at or above which a classifier answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnswerThreshold {
    /// The lowest score that is answered, in log-odds.
    pub threshold: f64,
    /// The number of labels with at least this score.
    pub answered: usize,
    /// The number of these that were predicted correctly.
    pub right: usize,
    /// The number of all labels.
    pub n: usize,
}

/// Computes ln(p / (1 − p)) of the predicted class under softmax: it orders rows by their confidence, and still separates
/// rows whose confidence rounds to one. At most 709; zero for an empty row.
pub fn log_odds(logits: &[f32]) -> f64 {
    let predicted = argmax(logits);
    let top = f64::from(lanes::max(logits));
    let others = logits.iter().enumerate().filter(|(class, _)| *class != predicted);
    let mass: f64 = others.map(|(_, &z)| libm::exp(f64::from(z) - top)).sum();
    if logits.is_empty() { 0.0 } else { -libm::log(mass.max(f64::MIN_POSITIVE)) }
}

/// Finds the lowest threshold at which the precision of the answers is at least `precision`, except with probability
/// `delta`; `None` if the labels do not show it for any threshold. The [module](self) documentation explains which scores
/// are allowed.
///
/// ```
/// use calmix_metrics::abstention::answer_threshold;
///
/// // Two hundred labels; of the half with the lower scores every second one is wrong.
/// let scores: Vec<f64> = (0..200).map(|i| 1.0 - 0.004 * f64::from(i)).collect();
/// let right: Vec<bool> = (0..200).map(|i| i < 100 || i % 2 == 0).collect();
/// let found = answer_threshold(&scores, &right, 0.9, 0.1)?.unwrap();
/// assert_eq!((found.answered, found.right), (110, 105));
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
/// If there is not one score per label, a score is not finite, or `precision` or `delta` is not between 0 and 1.
pub fn answer_threshold(
    scores: &[f64],
    right: &[bool],
    precision: f64,
    delta: f64,
) -> Result<Option<AnswerThreshold>, MetricsError> {
    checked::probability("precision", precision)?;
    checked::probability("delta", delta)?;
    checked::length("answers", scores.len(), right.len())?;
    checked::finite("the score of label", scores)?;
    let n = scores.len();
    let mut rows: Vec<(f64, bool)> = scores.iter().copied().zip(right.iter().copied()).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let min_labels = min_labels(precision, delta);
    let first = min_labels.saturating_mul(FIRST).min(2 * n / 5).max(min_labels);
    let mut found = None;
    for rank in (1..=STEPS).map(|step| (n * step).div_ceil(STEPS)).filter(|&rank| rank >= first) {
        // Equal scores are answered together or not at all, so the score of the first label left out is excluded.
        let limit = rows.get(rank).map(|&(score, _)| score);
        let answered = limit.map_or(n, |limit| rows.partition_point(|&(score, _)| score > limit));
        if answered < min_labels {
            continue;
        }
        let right = rows[..answered].iter().filter(|(_, right)| *right).count();
        // It cannot fail: there are samples, and delta is a probability.
        if share_at_least(right, answered, delta).is_ok_and(|share| share < precision) {
            break;
        }
        found = Some(AnswerThreshold { threshold: rows[answered - 1].0, answered, right, n });
    }
    Ok(found)
}

/// Returns the smallest number of labels that shows a precision if all of them are predicted correctly.
pub fn min_labels(precision: f64, delta: f64) -> usize {
    // The smallest n with precisionⁿ ≤ delta.
    (libm::log(delta) / libm::log(precision)).ceil().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_core::rng::{Domain, Seed};

    fn find(rows: &[(f64, bool)]) -> Option<AnswerThreshold> {
        let (scores, right): (Vec<f64>, Vec<bool>) = rows.iter().copied().unzip();
        answer_threshold(&scores, &right, 0.9, 0.1).unwrap()
    }

    #[test]
    fn few_labels_give_no_threshold() {
        // 0.9²¹ = 0.109, 0.9²² = 0.098.
        assert_eq!((min_labels(0.9, 0.1), min_labels(0.99, 0.1)), (22, 230));
        assert_eq!(find(&[(0.8, true); 21]), None);
        let found = find(&[(0.8, true); 22]).unwrap();
        assert_eq!((found.threshold, found.answered, found.n), (0.8, 22, 22));
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn invalid_input_is_refused() {
        let scores = [0.8; 22];
        let right = [true; 22];
        assert!(answer_threshold(&scores, &right, 1.0, 0.1).is_err());
        assert!(answer_threshold(&scores, &right, 0.9, 0.0).is_err());
        assert!(answer_threshold(&scores, &right[1..], 0.9, 0.1).is_err());
        assert!(answer_threshold(&[f64::NAN], &[true], 0.9, 0.1).is_err());
    }

    #[test]
    fn equal_scores_stay_together() {
        // Half of the labels share the highest score, the rest the lowest; the latter are wrong.
        let rows: Vec<(f64, bool)> =
            (0..100).map(|i| if i < 50 { (1.0, true) } else { (0.2, false) }).collect();
        let found = find(&rows).unwrap();
        assert_eq!((found.threshold, found.answered), (1.0, 50));
        let all: Vec<(f64, bool)> = (0..100).map(|i| (0.5, i % 2 == 0)).collect();
        assert_eq!(find(&all), None);
    }

    #[test]
    fn log_odds_separate_equal_confidences() {
        // p = 0.8: ln 4.
        assert!((log_odds(&[4.0_f32.ln(), 0.0]) - 4.0_f64.ln()).abs() < 1e-7);
        assert!((log_odds(&[0.0, 0.0, 0.0]) + 2.0_f64.ln()).abs() < 1e-12);
        assert!(log_odds(&[40.0, 0.0, 0.0]) > log_odds(&[39.0, 0.0, 0.0]));
        assert!(log_odds(&[f32::MAX, f32::MIN]).is_finite() && log_odds(&[1.0]).is_finite());
        assert_eq!(log_odds(&[]), 0.0);
    }

    /// Accuracy equals the score, which is uniform between 0.6 and 1: at s and above it is (1 + s)/2, so 90% needs a
    /// threshold of 0.8. The guarantee may fail in a tenth of all draws; of 1,000 draws, 130 are three deviations more.
    #[test]
    fn precision_holds_with_probability_delta() {
        for n in [60, 200, 1000] {
            let mut broken = 0;
            let mut answered = 0.0;
            for draw in 0..1000 {
                let mut stream = Seed(1).stream(Domain::Bootstrap, n, draw);
                let rows: Vec<(f64, bool)> = (0..n)
                    .map(|_| {
                        let score = 0.6 + 0.4 * stream.uniform();
                        (score, stream.uniform() < score)
                    })
                    .collect();
                if let Some(found) = find(&rows) {
                    broken += u32::from(found.threshold < 0.8);
                    answered += (1.0 - found.threshold) / 0.4 / 1000.0;
                }
            }
            assert!(broken <= 130, "{n} labels: {broken} of 1,000 broken");
            // At best half can be answered.
            assert!(n < 1000 || answered > 0.3, "{n} labels: {answered} answered");
        }
    }
}
