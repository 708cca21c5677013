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
//!
//! Several precisions at once are one family of tests, whose thresholds all hold except with probability δ. Each precision has its own
//! sequence, which starts with an equal share of δ; a sequence that ends without a failure leaves its share to the others (the
//! graphical procedure of Bretz, Maurer, Brannath, Posch: "A graphical approach to sequentially rejective multiple test
//! procedures", 2009). A threshold of a higher precision also holds for a lower one.

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

impl AnswerThreshold {
    /// Returns the threshold as a probability, rounded: decide by the score.
    pub fn confidence(&self) -> f64 {
        1.0 / (1.0 + libm::exp(-self.threshold))
    }
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
    let found = answer_thresholds(scores, right, &[precision], delta)?;
    Ok(found.into_iter().next().flatten())
}

/// Finds for each precision the lowest threshold at which the precision of the answers is at least that, except with probability
/// `delta` for all of them together.
///
/// # Errors
/// As [`answer_threshold`].
pub fn answer_thresholds(
    scores: &[f64],
    right: &[bool],
    precisions: &[f64],
    delta: f64,
) -> Result<Vec<Option<AnswerThreshold>>, MetricsError> {
    precisions.iter().try_for_each(|&precision| checked::probability("precision", precision))?;
    checked::probability("delta", delta)?;
    checked::length("answers", scores.len(), right.len())?;
    checked::finite("the score of label", scores)?;
    let mut rows: Vec<(f64, bool)> = scores.iter().copied().zip(right.iter().copied()).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    // With the smallest level that a sequence may have: its steps must not depend on what it inherits.
    let share = delta / precisions.len().max(1) as f64;
    let mut sequences: Vec<TestSequence> =
        precisions.iter().map(|&precision| TestSequence::new(&rows, precision, delta, share)).collect();
    let mut unfinished: Vec<usize> = (0..sequences.len()).collect();
    while !unfinished.is_empty() {
        let level = delta / unfinished.len() as f64;
        let before = unfinished.len();
        unfinished.retain(|&at| !sequences[at].advance(&rows, level));
        // Without another finished sequence no level grows.
        if unfinished.len() == before {
            break;
        }
    }
    let thresholds = (0..sequences.len()).map(|at| {
        let holds = sequences.iter().filter(|other| other.precision >= precisions[at]);
        holds.filter_map(|other| other.found).min_by(|a, b| a.threshold.total_cmp(&b.threshold))
    });
    Ok(thresholds.collect())
}

/// The tests of one precision, from the highest score down.
struct TestSequence {
    precision: f64,
    /// The number of answers of each test, ascending.
    steps: Vec<usize>,
    /// The number of tests that were passed.
    passed: usize,
    /// The last test that was passed.
    found: Option<AnswerThreshold>,
}

impl TestSequence {
    /// Chooses the tests on rows in descending order of their scores. Their level is from `min_level` to `delta`.
    fn new(rows: &[(f64, bool)], precision: f64, delta: f64, min_level: f64) -> Self {
        let n = rows.len();
        let first = min_labels(precision, delta).saturating_mul(FIRST).min(2 * n / 5);
        let min_labels = min_labels(precision, min_level);
        let first = first.max(min_labels);
        let ranks = (1..=STEPS).map(|step| (n * step).div_ceil(STEPS)).filter(|&rank| rank >= first);
        // Equal scores are answered together or not at all, so the score of the first label left out is excluded.
        let answered = ranks.map(|rank| match rows.get(rank) {
            Some(&(limit, _)) => rows.partition_point(|&(score, _)| score > limit),
            None => n,
        });
        let steps = answered.filter(|&answered| answered >= min_labels).collect();
        Self { precision, steps, passed: 0, found: None }
    }

    /// Continues until a test fails at this level; returns whether all were passed.
    fn advance(&mut self, rows: &[(f64, bool)], level: f64) -> bool {
        while let Some(&answered) = self.steps.get(self.passed) {
            let right = rows[..answered].iter().filter(|(_, right)| *right).count();
            // It cannot fail: there are samples, and the level is a probability.
            if share_at_least(right, answered, level).is_ok_and(|share| share < self.precision) {
                return false;
            }
            let threshold = rows[answered - 1].0;
            self.found = Some(AnswerThreshold { threshold, answered, right, n: rows.len() });
            self.passed += 1;
        }
        true
    }
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

    /// Draws labels whose accuracy is their score, which is uniform between 0.6 and 1.
    fn drawn(n: u64, draw: u64) -> (Vec<f64>, Vec<bool>) {
        let mut stream = Seed(1).stream(Domain::Bootstrap, n, draw);
        let row = |_| {
            let score = 0.6 + 0.4 * stream.uniform();
            (score, stream.uniform() < score)
        };
        (0..n).map(row).unzip()
    }

    /// At s and above, the precision is (1 + s)/2. One precision at a time, each at the whole δ, breaks some more often.
    #[test]
    fn several_precisions_hold_together() {
        let precisions: Vec<f64> = (0..12).map(|n| 0.83 + 0.01 * f64::from(n)).collect();
        let mut broken = 0;
        let mut broken_alone = 0;
        let mut found = 0;
        for draw in 0..1000 {
            let (scores, right) = drawn(400, draw);
            let is_broken = |at: usize, found: Option<AnswerThreshold>| {
                found.is_some_and(|found| f64::midpoint(1.0, found.threshold) < precisions[at])
            };
            let together = answer_thresholds(&scores, &right, &precisions, 0.1).unwrap();
            broken += u32::from((0..12).any(|at| is_broken(at, together[at])));
            found += together.iter().flatten().count();
            let alone = |at: usize| answer_threshold(&scores, &right, precisions[at], 0.1).unwrap();
            broken_alone += u32::from((0..12).any(|at| is_broken(at, alone(at))));
        }
        assert!(broken <= 130 && broken_alone > 130, "{broken} and {broken_alone} of 1,000 broken");
        assert!(found > 4_000, "{found} of 12,000 found");
    }

    #[test]
    fn easy_precision_costs_the_others_nothing() {
        let (scores, right) = drawn(400, 5);
        let alone = answer_threshold(&scores, &right, 0.9, 0.1).unwrap().unwrap();
        // All answers together reach 50% and 60% at any level.
        let found = answer_thresholds(&scores, &right, &[0.5, 0.9, 0.6], 0.1).unwrap();
        assert_eq!(found[1], Some(alone));
        assert_eq!([found[0], found[2]].map(|easy| easy.unwrap().answered), [400, 400]);
        // The same precision thrice is three times the same threshold, found at a third of the level.
        let thrice = answer_thresholds(&scores, &right, &[0.9; 3], 0.1).unwrap();
        assert!(thrice[0] == thrice[1] && thrice[1] == thrice[2]);
        assert!(thrice[0].is_none_or(|found| found.threshold > alone.threshold));
        assert_eq!(answer_thresholds(&scores, &right, &[], 0.1).unwrap(), []);
    }

    /// Accuracy equals the score, which is uniform between 0.6 and 1: at s and above it is (1 + s)/2, so 90% needs a
    /// threshold of 0.8. The guarantee may fail in a tenth of all draws; of 1,000 draws, 130 are three deviations more.
    #[test]
    fn precision_holds_with_probability_delta() {
        for n in [60, 200, 1000] {
            let mut broken = 0;
            let mut answered = 0.0;
            for draw in 0..1000 {
                let (scores, right) = drawn(n, draw);
                if let Some(found) = answer_threshold(&scores, &right, 0.9, 0.1).unwrap() {
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
