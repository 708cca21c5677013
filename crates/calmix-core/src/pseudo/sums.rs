//! Sums over all rows of a step, for the statistics of a base algorithm: each micro-batch computes its own, and they are added
//! in the order of the micro-batches.

use super::labels::hard_labels;
use crate::lanes;
use crate::matrix::Matrix;
use crate::softmax::softmax_into;

/// Sums over the labelled and the unlabelled rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sums {
    /// Over the labelled rows.
    pub labelled: BatchSums,
    /// Over the unlabelled rows.
    pub unlabelled: BatchSums,
}

/// Sums over rows of predictions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchSums {
    /// The number of rows.
    pub rows: f64,
    /// The sum of the confidences (the largest probability of each row).
    pub confidence: f64,
    /// The sum of the squared confidences.
    pub squares: f64,
    /// The sums of the probabilities, one per class.
    pub probabilities: Vec<f64>,
    /// The number of rows with each class as their (pseudo-)label.
    pub labels: Vec<f64>,
}

impl Sums {
    pub(super) fn of(labelled: Matrix<'_>, unlabelled: Matrix<'_>) -> Self {
        Self { labelled: BatchSums::of(labelled), unlabelled: BatchSums::of(unlabelled) }
    }

    /// Adds the sums of the next micro-batch.
    pub fn add(&mut self, next: &Self) {
        self.labelled.add(&next.labelled);
        self.unlabelled.add(&next.unlabelled);
    }

    /// Returns the sums as a list of numbers, of the same length for every micro-batch of a method.
    pub fn to_vec(&self) -> Vec<f64> {
        let batches = [&self.labelled, &self.unlabelled];
        batches.into_iter().flat_map(BatchSums::values).collect()
    }

    /// Reads the sums from a list that [`to_vec`](Self::to_vec) made.
    pub fn from_slice(numbers: &[f64]) -> Self {
        let (labelled, unlabelled) = numbers.split_at(numbers.len() / 2);
        Self { labelled: BatchSums::from_slice(labelled), unlabelled: BatchSums::from_slice(unlabelled) }
    }

    /// Returns the length of the list that [`to_vec`](Self::to_vec) makes.
    pub(super) fn width(classes: usize) -> usize {
        2 * (BatchSums::SCALARS + 2 * classes)
    }
}

impl BatchSums {
    /// The number of sums that are not per class.
    const SCALARS: usize = 3;

    fn of(logits: Matrix<'_>) -> Self {
        let zeros = vec![0.0; logits.width()];
        let mut sums = Self { probabilities: zeros.clone(), labels: zeros, ..Self::default() };
        for row in probabilities(logits).chunks_exact(logits.width().max(1)) {
            sums.add_confidence(f64::from(lanes::max(row)));
            for (sum, &p) in sums.probabilities.iter_mut().zip(row) {
                *sum += f64::from(p);
            }
        }
        for label in hard_labels(logits) {
            sums.labels[label as usize] += 1.0;
        }
        sums
    }

    /// Adds a row of this confidence.
    pub(super) fn add_confidence(&mut self, confidence: f64) {
        self.rows += 1.0;
        self.confidence += confidence;
        self.squares += confidence * confidence;
    }

    /// Returns the mean probabilities; `None` without rows.
    pub(super) fn mean(&self) -> Option<Vec<f64>> {
        (self.rows > 0.0).then(|| self.probabilities.iter().map(|sum| sum / self.rows).collect())
    }

    fn add(&mut self, next: &Self) {
        self.rows += next.rows;
        self.confidence += next.confidence;
        self.squares += next.squares;
        for (sums, next) in [(&mut self.probabilities, &next.probabilities), (&mut self.labels, &next.labels)]
        {
            sums.resize(next.len(), 0.0);
            sums.iter_mut().zip(next).for_each(|(sum, next)| *sum += next);
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let by_class = self.probabilities.iter().chain(&self.labels).copied();
        [self.rows, self.confidence, self.squares].into_iter().chain(by_class)
    }

    fn from_slice(numbers: &[f64]) -> Self {
        let Some((&[rows, confidence, squares], by_class)) = numbers.split_first_chunk() else {
            return Self::default();
        };
        let (probabilities, labels) = by_class.split_at(by_class.len() / 2);
        let [probabilities, labels] = [probabilities, labels].map(<[f64]>::to_vec);
        Self { rows, confidence, squares, probabilities, labels }
    }
}

/// Computes the softmax of each row.
pub(super) fn probabilities(logits: Matrix<'_>) -> Vec<f32> {
    let mut probabilities = vec![0.0; logits.data().len()];
    for (p, z) in probabilities.chunks_exact_mut(logits.width().max(1)).zip(logits.iter()) {
        softmax_into(z, p);
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo::{Base, FixMatch, SoftMatch};

    #[test]
    fn sums_of_micro_batches_add_up() {
        let base = Base::SoftMatch(SoftMatch::default());
        let (z, none) = ([0.0, 0.0, 50.0, 0.0], Matrix::new(&[], 0, 2).unwrap());
        let all = Matrix::new(&z, 2, 2).unwrap();
        let total = base.sums(none, all);
        let expected = BatchSums {
            rows: 2.0,
            confidence: 1.5,
            squares: 1.25,
            probabilities: vec![1.5, total.unlabelled.probabilities[1]],
            labels: vec![2.0, 0.0],
        };
        assert_eq!(total.unlabelled, expected);
        assert_eq!(total.labelled.mean(), None);
        let mut sum = Sums::default();
        for row in 0..2 {
            let micro_batch = base.sums(none, all.range(row..row + 1));
            let numbers = micro_batch.to_vec();
            assert_eq!(numbers.len(), base.sums_width(2));
            assert_eq!(Sums::from_slice(&numbers), micro_batch);
            sum.add(&micro_batch);
        }
        assert_eq!(sum, total);
        let fixmatch = Base::FixMatch(FixMatch::default());
        assert_eq!(fixmatch.sums(none, all).to_vec().len(), fixmatch.sums_width(2));
    }
}
