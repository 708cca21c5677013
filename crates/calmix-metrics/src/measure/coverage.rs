//! The risk of a classifier that answers only above a confidence threshold.

use super::top_label::Ties;
use super::{Counts, TopLabel};

/// The risk and coverage at one confidence threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoveragePoint {
    /// The lowest confidence at which the classifier answers.
    pub threshold: f64,
    /// The share of samples that it answers.
    pub coverage: f64,
    /// The share of its answers that is wrong: one minus the accuracy.
    pub risk: f64,
}

/// Predictions that are sorted by confidence once, for any counts of their rows.
///
/// ```
/// use calmix_metrics::measure::{Counts, RiskCoverage, TopLabel};
///
/// let predictions = TopLabel::new(vec![0.9, 0.6], vec![true, false])?;
/// let coverage = RiskCoverage::new(&predictions);
/// let mut counts = Counts::once(2);
/// assert_eq!(coverage.aurc(&counts), 0.25);
/// counts.draw(&[1, 1]);
/// assert_eq!(coverage.aurc(&counts), 1.0);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RiskCoverage {
    ties: Ties,
    /// 1 if the row is wrong, otherwise 0.
    wrong: Vec<f64>,
}

impl RiskCoverage {
    /// Prepares the predictions.
    pub fn new(predictions: &TopLabel) -> Self {
        let wrong = predictions.correct().iter().map(|&right| f64::from(u8::from(!right))).collect();
        Self { ties: Ties::new(predictions.confidence()), wrong }
    }

    /// Computes the area under the risk-coverage curve; see [`aurc`].
    pub fn aurc(&self, counts: &Counts) -> f64 {
        let mut kept = 0.0;
        let mut wrong = 0.0;
        let mut area = 0.0;
        for (_, count, wrong_in_run) in self.steps(counts) {
            for taken in 1..=count as u64 {
                let taken = taken as f64;
                area += (wrong + wrong_in_run * (taken / count)) / (kept + taken);
            }
            kept += count;
            wrong += wrong_in_run;
        }
        area / counts.total().max(1.0)
    }

    /// Iterates over the distinct confidences, the highest first: their rows, their count, and the count of wrong ones.
    fn steps(&self, counts: &Counts) -> impl Iterator<Item = (&[usize], f64, f64)> {
        let counts = counts.of_row();
        self.ties.runs().rev().map(move |run| {
            let add =
                |(count, wrong), &row: &usize| (count + counts[row], wrong + counts[row] * self.wrong[row]);
            let (count, wrong) = run.iter().fold((0.0, 0.0), add);
            (run, count, wrong)
        })
    }
}

/// Computes the risk at every coverage that a threshold can reach, from the highest threshold down.
///
/// There is one point per distinct confidence: equal confidences are answered or left out together.
pub fn coverage_curve(predictions: &TopLabel) -> Vec<CoveragePoint> {
    let n = predictions.len() as f64;
    let mut kept = 0.0;
    let mut wrong = 0.0;
    let point = |(rows, count, wrong_in_run): (&[usize], f64, f64)| {
        kept += count;
        wrong += wrong_in_run;
        let threshold = rows.last().map_or(0.0, |&row| predictions.confidence()[row]);
        CoveragePoint { threshold, coverage: kept / n, risk: wrong / kept }
    };
    RiskCoverage::new(predictions).steps(&Counts::once(predictions.len())).map(point).collect()
}

/// Computes the area under the risk-coverage curve (Geifman and El-Yaniv, 2017): the mean of the risk of the k most
/// confident predictions over k = 1, …, n.
///
/// If k falls among equal confidences, the risk is the expectation over random tie-breaking, so the
/// area does not depend on the order of the rows.
pub fn aurc(predictions: &TopLabel) -> f64 {
    RiskCoverage::new(predictions).aurc(&Counts::once(predictions.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top_label(confidence: &[f64], correct: &[bool]) -> TopLabel {
        TopLabel::new(confidence.to_vec(), correct.to_vec()).unwrap()
    }

    #[test]
    fn coverage_curve_of_four_predictions() {
        let predictions = top_label(&[0.9, 0.6, 0.9, 0.5], &[true, false, true, true]);
        let curve: Vec<(f64, f64, f64)> =
            coverage_curve(&predictions).iter().map(|p| (p.threshold, p.coverage, p.risk)).collect();
        assert_eq!(curve, [(0.9, 0.5, 0.0), (0.6, 0.75, 1.0 / 3.0), (0.5, 1.0, 0.25)]);
        assert!((aurc(&predictions) - (1.0 / 3.0 + 0.25) / 4.0).abs() < 1e-15);
    }

    #[test]
    fn aurc_of_ties_is_the_expectation() {
        let tied = aurc(&top_label(&[0.9, 0.7, 0.7, 0.7], &[true, false, true, false]));
        let mut mean = 0.0;
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let correct: Vec<bool> = order.iter().map(|&i| [false, true, false][i]).collect();
            let untied = top_label(&[0.9, 0.7, 0.6, 0.5], &[true, correct[0], correct[1], correct[2]]);
            mean += aurc(&untied) / 6.0;
        }
        assert!((tied - mean).abs() < 1e-15);
    }

    #[test]
    fn no_predictions_have_no_curve() {
        assert!(coverage_curve(&top_label(&[], &[])).is_empty());
        assert_eq!(aurc(&top_label(&[], &[])), 0.0);
    }
}
