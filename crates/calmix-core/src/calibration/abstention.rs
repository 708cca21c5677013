//! From which confidence on the answers of a classifier are right often enough.
//!
//! Judged on labels that it was not trained on, one confidence after the other from the highest down: as soon as the
//! answers at a confidence and above are not shown to be right often enough, the confidence before that is the level.
//! Each test is Clopper and Pearson's at the same δ. Where accuracy falls with confidence, testing in an order that was
//! fixed before keeps the whole sequence at δ: nothing is lost to the number of tests (Angelopoulos, Bates, Candès,
//! Jordan, Lei: "Learn then test", 2021).

use super::{CalibrationError, TopLabel, checked};
use crate::stats::share_at_least;

/// Into how many steps the labels are cut, by the rank of their confidence. Each test may end the sequence by chance, so
/// a finer grid answers less.
const STEPS: usize = 20;

/// The first test is of so many times the labels that could show the precision if all of them were right, so that a few
/// may be wrong; of two fifths of the labels where they are few.
const FIRST: usize = 3;

/// From which confidence on a classifier may answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnswerLevel {
    /// It answers at this confidence and above.
    pub level: f64,
    /// How many of the labels are at this level or above.
    pub answered: usize,
    /// How many of these it got right.
    pub right: usize,
    /// How many labels there are.
    pub n: usize,
}

/// The lowest level at which the share of right answers is shown to be at least `precision`, except with probability
/// `delta`; none if the labels do not show it of any.
///
/// ```
/// use calmix_core::calibration::{TopLabel, answer_level};
///
/// // Two hundred labels; of the less confident half every second one is wrong.
/// let confidence: Vec<f64> = (0..200).map(|i| 1.0 - 0.004 * f64::from(i)).collect();
/// let right: Vec<bool> = (0..200).map(|i| i < 100 || i % 2 == 0).collect();
/// let level = answer_level(&TopLabel::new(confidence, right)?, 0.9, 0.1)?.unwrap();
/// assert_eq!((level.answered, level.right), (110, 105));
/// # Ok::<(), calmix_core::calibration::CalibrationError>(())
/// ```
///
/// # Errors
/// If `precision` or `delta` is not between 0 and 1.
pub fn answer_level(
    predictions: &TopLabel,
    precision: f64,
    delta: f64,
) -> Result<Option<AnswerLevel>, CalibrationError> {
    for (what, value) in [("precision", precision), ("delta", delta)] {
        checked::parameter(what, value, "between 0 and 1", |value| value > 0.0 && value < 1.0)?;
    }
    let n = predictions.len();
    let mut rows: Vec<(f64, bool)> =
        predictions.confidence().iter().copied().zip(predictions.correct().iter().copied()).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let fewest = fewest_labels(precision, delta);
    let first = fewest.saturating_mul(FIRST).min(2 * n / 5).max(fewest);
    let mut found = None;
    for rank in (1..=STEPS).map(|step| (n * step).div_ceil(STEPS)).filter(|&rank| rank >= first) {
        // Equal confidences are answered together or not at all: those of the first that is left out are left out.
        let limit = rows.get(rank).map(|&(confidence, _)| confidence);
        let answered = limit.map_or(n, |limit| rows.partition_point(|&(confidence, _)| confidence > limit));
        if answered < fewest {
            continue;
        }
        let right = rows[..answered].iter().filter(|(_, right)| *right).count();
        // There are samples, and delta is a probability.
        if share_at_least(right, answered, delta).is_ok_and(|share| share < precision) {
            break;
        }
        found = Some(AnswerLevel { level: rows[answered - 1].0, answered, right, n });
    }
    Ok(found)
}

/// How many labels, all of them right, show a precision.
pub fn fewest_labels(precision: f64, delta: f64) -> usize {
    // precisionⁿ ≤ delta.
    (libm::log(delta) / libm::log(precision)).ceil().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Domain, Seed};

    fn said(rows: &[(f64, bool)]) -> TopLabel {
        let (confidence, right) = rows.iter().copied().unzip();
        TopLabel::new(confidence, right).unwrap()
    }

    #[test]
    fn few_labels_show_nothing() {
        // 0.9²¹ = 0.109, 0.9²² = 0.098.
        assert_eq!((fewest_labels(0.9, 0.1), fewest_labels(0.99, 0.1)), (22, 230));
        let right = |n: usize| said(&vec![(0.8, true); n]);
        assert_eq!(answer_level(&right(21), 0.9, 0.1).unwrap(), None);
        let level = answer_level(&right(22), 0.9, 0.1).unwrap().unwrap();
        assert_eq!((level.level, level.answered, level.n), (0.8, 22, 22));
        assert_eq!(answer_level(&right(0), 0.9, 0.1).unwrap(), None);
        assert!(answer_level(&right(22), 1.0, 0.1).is_err() && answer_level(&right(22), 0.9, 0.0).is_err());
    }

    #[test]
    fn equal_confidences_stay_together() {
        // Half of the labels share the highest confidence, the rest the lowest; the latter are wrong.
        let rows: Vec<(f64, bool)> =
            (0..100).map(|i| if i < 50 { (1.0, true) } else { (0.2, false) }).collect();
        let level = answer_level(&said(&rows), 0.9, 0.1).unwrap().unwrap();
        assert_eq!((level.level, level.answered), (1.0, 50));
        let all: Vec<(f64, bool)> = (0..100).map(|i| (0.5, i % 2 == 0)).collect();
        assert_eq!(answer_level(&said(&all), 0.9, 0.1).unwrap(), None);
    }

    /// Accuracy equals confidence, which is uniform between 0.6 and 1: at confidence c and above it is (1 + c)/2, so 90 %
    /// needs the level 0.8. The promise may fail in a tenth of all draws; of 1,000 draws, 130 are three deviations more.
    #[test]
    fn the_promise_holds_in_nine_draws_of_ten() {
        for n in [60, 200, 1000] {
            let (mut broken, mut answered) = (0, 0.0);
            for draw in 0..1000 {
                let mut stream = Seed(1).stream(Domain::Bootstrap, n, draw);
                let rows: Vec<(f64, bool)> = (0..n)
                    .map(|_| {
                        let confidence = 0.6 + 0.4 * stream.uniform();
                        (confidence, stream.uniform() < confidence)
                    })
                    .collect();
                if let Some(found) = answer_level(&said(&rows), 0.9, 0.1).unwrap() {
                    broken += u32::from(found.level < 0.8);
                    answered += (1.0 - found.level) / 0.4 / 1000.0;
                }
            }
            assert!(broken <= 130, "{n} labels: {broken} of 1,000 broken");
            // At best half can be answered.
            assert!(n < 1000 || answered > 0.3, "{n} labels: {answered} answered");
        }
    }
}
