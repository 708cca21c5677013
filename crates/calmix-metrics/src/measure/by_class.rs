//! Recall, precision and F1 of every class, and their means over the classes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Counts;
use crate::error::MetricsError;
use crate::stats::{Estimate, clopper_pearson};

/// The true and the predicted class of every row.
///
/// ```
/// use calmix_metrics::measure::{ClassMeans, ClassRows, Counts};
///
/// // Two of three rows of class 0 are right, the only row of class 1 is, and class 2 has no rows.
/// let rows = ClassRows::new(vec![0, 0, 0, 1], vec![0, 0, 2, 1], 3)?;
/// let means = rows.means(&Counts::once(4)).unwrap();
/// assert!((means.balanced_error - (1.0 / 3.0 + 0.0) / 2.0).abs() < 1e-15);
/// assert!((means.macro_f1 - (0.8 + 1.0 + 0.0) / 3.0).abs() < 1e-15);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassRows {
    labels: Vec<u32>,
    predicted: Vec<u32>,
    classes: usize,
}

/// Means over classes, in which a rare class counts as much as a frequent one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassMeans {
    /// The mean error of the classes that have rows.
    pub balanced_error: f64,
    /// The mean F1 of the classes that have rows or predictions.
    pub macro_f1: f64,
}

/// Recall, precision and F1 of one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassScores {
    /// The share of the rows of the class that are predicted as it, with its Clopper–Pearson interval; `None` without rows.
    pub recall: Option<Estimate>,
    /// The share of the rows predicted as the class that belong to it; `None` without such rows.
    pub precision: Option<Estimate>,
    /// The harmonic mean of both: zero if the class has rows or predictions but no hit, `None` if it has neither.
    pub f1: Option<f64>,
}

/// The numbers of rows of one class: its own, those predicted as it, and those in both.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    rows: f64,
    predicted: f64,
    hits: f64,
}

impl Totals {
    fn f1(self) -> Option<f64> {
        let both = self.rows + self.predicted;
        (both > 0.0).then(|| 2.0 * self.hits / both)
    }
}

impl ClassRows {
    /// Takes the true and the predicted class of every row.
    ///
    /// # Errors
    /// If the lengths differ, or a number is not that of a class.
    pub fn new(labels: Vec<u32>, predicted: Vec<u32>, classes: usize) -> Result<Self, MetricsError> {
        crate::checked::length("predicted classes", labels.len(), predicted.len())?;
        for of_rows in [&labels, &predicted] {
            if let Some(row) = of_rows.iter().position(|&class| class as usize >= classes) {
                return Err(MetricsError::Label { row, label: of_rows[row], classes });
            }
        }
        Ok(Self { labels, predicted, classes })
    }

    /// Computes the means over classes; `None` without rows.
    pub fn means(&self, counts: &Counts) -> Option<ClassMeans> {
        let totals = self.totals(counts);
        let errors = totals.iter().filter(|of| of.rows > 0.0).map(|of| 1.0 - of.hits / of.rows);
        let f1 = totals.iter().filter_map(|of| of.f1());
        Some(ClassMeans { balanced_error: mean(errors)?, macro_f1: mean(f1)? })
    }

    /// Returns the share of each class's rows that are predicted as it; `None` for a class without rows.
    pub fn accuracy(&self) -> Vec<Option<f64>> {
        let totals = self.totals(&Counts::once(self.labels.len()));
        totals.into_iter().map(|of| (of.rows > 0.0).then(|| of.hits / of.rows)).collect()
    }

    /// Computes the scores of every class, with intervals at `level`. With [groups](crate::groups), the intervals are those of
    /// as many rows as there are groups, as if the rows of a group were copies.
    ///
    /// # Errors
    /// If the level is not in (0, 1).
    pub fn scores(&self, groups: &[u32], level: f64) -> Result<Vec<ClassScores>, MetricsError> {
        let totals = self.totals(&Counts::once(self.labels.len()));
        let observations = [&self.labels, &self.predicted].map(|of_rows| self.observations(of_rows, groups));
        let [own, predicted] = observations;
        let share = |hits: f64, of: f64, n: usize| {
            let observed = (hits / of * n as f64).round() as usize;
            let exact = (of > 0.0).then(|| clopper_pearson(observed, n, level)).transpose();
            exact.map(|exact| exact.map(|exact| Estimate { estimate: hits / of, ..exact }))
        };
        let scores = totals.into_iter().zip(own.into_iter().zip(predicted));
        let scores = scores.map(|(of, (own, predicted))| {
            Ok(ClassScores {
                recall: share(of.hits, of.rows, own)?,
                precision: share(of.hits, of.predicted, predicted)?,
                f1: of.f1(),
            })
        });
        scores.collect()
    }

    fn totals(&self, counts: &Counts) -> Vec<Totals> {
        let mut totals = vec![Totals::default(); self.classes];
        let rows = self.labels.iter().zip(&self.predicted).zip(counts.of_row());
        for ((&label, &predicted), &count) in rows {
            totals[label as usize].rows += count;
            totals[predicted as usize].predicted += count;
            totals[label as usize].hits += if label == predicted { count } else { 0.0 };
        }
        totals
    }

    /// Counts the independent observations among the rows of each class: rows, or their groups.
    fn observations(&self, of_rows: &[u32], groups: &[u32]) -> Vec<usize> {
        let mut seen = vec![BTreeSet::new(); self.classes];
        for (row, &class) in of_rows.iter().enumerate() {
            seen[class as usize].insert(groups.get(row).map_or(row, |&group| group as usize));
        }
        seen.iter().map(BTreeSet::len).collect()
    }
}

/// Returns the mean; `None` of no numbers.
fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = numbers.fold((0_usize, 0.0), |(count, sum), number| (count + 1, sum + number));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class 0 has three rows of which two are right, class 1 one; class 2 is predicted once but has no rows; class 3 neither.
    fn made() -> ClassRows {
        ClassRows::new(vec![0, 0, 0, 1], vec![0, 0, 2, 1], 4).unwrap()
    }

    #[test]
    fn classes_without_rows_are_left_out() {
        let scores = made().scores(&[], 0.95).unwrap();
        assert_eq!(scores[0].recall, Some(clopper_pearson(2, 3, 0.95).unwrap()));
        assert_eq!(scores[0].precision, Some(clopper_pearson(2, 2, 0.95).unwrap()));
        assert_eq!(scores[2].recall, None);
        assert_eq!(
            scores[2].precision.map(|share| (share.n, share.estimate, share.low)),
            Some((1, 0.0, 0.0))
        );
        assert_eq!((scores[2].f1, scores[3].f1), (Some(0.0), None));
        assert_eq!(made().accuracy(), [Some(2.0 / 3.0), Some(1.0), None, None]);
        assert_eq!(ClassRows::new(Vec::new(), Vec::new(), 2).unwrap().means(&Counts::once(0)), None);
    }

    #[test]
    fn drawn_rows_have_the_means_of_their_copies() {
        let mut counts = Counts::once(4);
        counts.draw(&[3, 2, 3, 2]);
        let drawn = ClassRows::new(vec![1, 0, 1, 0], vec![1, 2, 1, 2], 4).unwrap();
        assert_eq!(made().means(&counts), drawn.means(&Counts::once(4)));
    }

    #[test]
    fn copies_of_a_group_count_once() {
        // Two groups of three copies each: one right, one wrong.
        let labels = vec![0; 6];
        let rows = ClassRows::new(labels, vec![0, 0, 0, 1, 1, 1], 2).unwrap();
        let grouped = rows.scores(&[4, 4, 4, 9, 9, 9], 0.95).unwrap();
        assert_eq!(grouped[0].recall, Some(clopper_pearson(1, 2, 0.95).unwrap()));
        assert_eq!(rows.scores(&[], 0.95).unwrap()[0].recall, Some(clopper_pearson(3, 6, 0.95).unwrap()));
    }

    #[test]
    fn numbers_that_are_no_classes_are_refused() {
        assert!(ClassRows::new(vec![0, 2], vec![0, 0], 2).is_err());
        assert!(ClassRows::new(vec![0, 0], vec![0, 2], 2).is_err());
        assert!(ClassRows::new(vec![0, 0], vec![0], 2).is_err());
    }
}
