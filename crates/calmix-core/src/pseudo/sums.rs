//! Sums over the rows of a step that a base algorithm's statistics need, so that they are global: a shard makes its
//! own, and the sums of all shards are added in the order of the shards.

use super::{Base, hard_labels};
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
    /// How many rows.
    pub rows: f64,
    /// Of the largest probability of each row.
    pub confidence: f64,
    /// Of its square.
    pub squares: f64,
    /// Of the probabilities, class by class.
    pub probabilities: Vec<f64>,
    /// How many rows have each class as their label.
    pub labels: Vec<f64>,
}

impl Sums {
    /// The sums of a shard, as far as `base` needs them; all zero where it needs none.
    pub fn of(base: &Base, labelled: Matrix<'_>, unlabelled: Matrix<'_>) -> Self {
        if !base.needs_sums() {
            return Self::default();
        }
        Self { labelled: BatchSums::of(labelled), unlabelled: BatchSums::of(unlabelled) }
    }

    /// Adds those of the next shard.
    pub fn add(&mut self, next: &Self) {
        self.labelled.add(&next.labelled);
        self.unlabelled.add(&next.unlabelled);
    }

    /// As a list of numbers: as many for every shard of a method.
    pub fn numbers(&self) -> Vec<f64> {
        let batches = [&self.labelled, &self.unlabelled];
        batches.into_iter().flat_map(BatchSums::numbers).collect()
    }

    /// From such a list.
    pub fn read(numbers: &[f64]) -> Self {
        let (labelled, unlabelled) = numbers.split_at(numbers.len() / 2);
        Self { labelled: BatchSums::read(labelled), unlabelled: BatchSums::read(unlabelled) }
    }

    /// How long that list is.
    pub fn width(base: &Base, classes: usize) -> usize {
        if base.needs_sums() { 2 * (BatchSums::SCALARS + 2 * classes) } else { 2 * BatchSums::SCALARS }
    }
}

impl BatchSums {
    /// Numbers beside the classes.
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

    /// Counts a row of this confidence.
    pub(super) fn add_confidence(&mut self, confidence: f64) {
        self.rows += 1.0;
        self.confidence += confidence;
        self.squares += confidence * confidence;
    }

    /// The mean row; none when there is no row.
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

    fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        let by_class = self.probabilities.iter().chain(&self.labels).copied();
        [self.rows, self.confidence, self.squares].into_iter().chain(by_class)
    }

    fn read(numbers: &[f64]) -> Self {
        let Some((&[rows, confidence, squares], by_class)) = numbers.split_first_chunk() else {
            return Self::default();
        };
        let (probabilities, labels) = by_class.split_at(by_class.len() / 2);
        let [probabilities, labels] = [probabilities, labels].map(<[f64]>::to_vec);
        Self { rows, confidence, squares, probabilities, labels }
    }
}

/// The softmax of each row.
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
    use crate::pseudo::{FixMatch, SoftMatch};

    #[test]
    fn sums_of_shards_add_up_and_travel_as_numbers() {
        let base = Base::SoftMatch(SoftMatch::default());
        let (z, none) = ([0.0, 0.0, 50.0, 0.0], Matrix::new(&[], 0, 2).unwrap());
        let all = Matrix::new(&z, 2, 2).unwrap();
        let whole = Sums::of(&base, none, all);
        let expected = BatchSums {
            rows: 2.0,
            confidence: 1.5,
            squares: 1.25,
            probabilities: vec![1.5, whole.unlabelled.probabilities[1]],
            labels: vec![2.0, 0.0],
        };
        assert_eq!(whole.unlabelled, expected);
        assert_eq!(whole.labelled.mean(), None);
        let mut sum = Sums::default();
        for row in 0..2 {
            let shard = Sums::of(&base, none, all.range(row..row + 1));
            let numbers = shard.numbers();
            assert_eq!(numbers.len(), Sums::width(&base, 2));
            assert_eq!(Sums::read(&numbers), shard);
            sum.add(&shard);
        }
        assert_eq!(sum, whole);
        let fixmatch = Base::FixMatch(FixMatch::default());
        assert_eq!(Sums::of(&fixmatch, none, all).numbers().len(), Sums::width(&fixmatch, 2));
    }
}
