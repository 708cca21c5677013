//! Isotonic regression: the best non-decreasing function from a score to a probability.
//!
//! Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability estimates", KDD
//! 2002. Least squares by pooling adjacent violators, with the conventions of scikit-learn's
//! `IsotonicRegression(out_of_bounds="clip")`: equal scores are averaged first, the function is linear between its
//! knots, and constant beyond them. Scores are equal if they are the same number; scikit-learn also treats
//! scores less than 1e-15 apart as equal.
//!
//! ```
//! use calmix_metrics::calibrator::isotonic::Isotonic;
//!
//! let isotonic = Isotonic::fit(&[0.6, 0.7, 0.8, 0.9], &[0.0, 1.0, 0.0, 1.0], None)?;
//! assert_eq!(isotonic.predict(0.75), 0.5);
//! assert_eq!(isotonic.predict(0.99), 1.0);
//! # Ok::<(), calmix_metrics::error::MetricsError>(())
//! ```

use calmix_core::lanes;
use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::checked;
use crate::error::MetricsError;

/// A non-decreasing, piecewise linear function, given by its knots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredIsotonic")]
pub struct Isotonic {
    scores: Vec<f64>,
    values: Vec<f64>,
    n: usize,
}

/// Samples or blocks of samples that share one value.
#[derive(Clone, Copy)]
struct Pool {
    first: f64,
    last: f64,
    value: f64,
    weight: f64,
}

impl Isotonic {
    /// Fits the non-decreasing function with the smallest weighted squared error; all weights are one by default.
    ///
    /// A sample of weight zero has no influence. One sample gives a constant.
    ///
    /// # Errors
    /// If no sample has a positive weight, the lengths differ, a number is not finite, a weight is negative,
    /// or the numbers are so large that a sum or a difference of them is not finite.
    pub fn fit(scores: &[f64], targets: &[f64], weights: Option<&[f64]>) -> Result<Self, MetricsError> {
        checked::length("targets", scores.len(), targets.len())?;
        checked::finite("the score of sample", scores)?;
        checked::finite("the target of sample", targets)?;
        if let Some(weights) = weights {
            checked::length("weights", scores.len(), weights.len())?;
            checked::values("the weight of sample", weights, "zero or more, and finite", |w| {
                w >= 0.0 && w.is_finite()
            })?;
        }
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let mut samples: Vec<Pool> = (0..scores.len())
            .filter(|&i| weight(i) > 0.0)
            .map(|i| Pool { first: scores[i], last: scores[i], value: targets[i], weight: weight(i) })
            .collect();
        // Sort by all fields, so that the order of the samples cannot change a bit of the result.
        samples.sort_by(|a, b| {
            let by = |x: f64, y: f64| x.total_cmp(&y);
            by(a.first + 0.0, b.first + 0.0).then(by(a.value, b.value)).then(by(a.weight, b.weight))
        });
        let n = samples.len();
        let blocks = pool_violators(average_ties(&samples));
        let total: f64 = blocks.iter().map(|block| block.weight).sum();
        checked::parameter("total weight", total, "finite", f64::is_finite)?;
        Self::from_blocks(&blocks, n).checked()
    }

    /// Fits the function from the confidence in the predicted class to its accuracy, from logits and labels.
    ///
    /// Apply it with [`Isotonic::confidence`].
    ///
    /// # Errors
    /// If there are no rows, labels and rows do not match, or a logit is not finite.
    pub fn fit_top_label(logits: Matrix, labels: &[u32]) -> Result<Self, MetricsError> {
        checked::logits(logits, labels)?;
        let scores: Vec<f64> = logits.iter().map(top_probability).collect();
        let right = |(row, &label): (&[f32], &u32)| f64::from(u8::from(argmax(row) == label as usize));
        let targets: Vec<f64> = logits.iter().zip(labels).map(right).collect();
        Self::fit(&scores, &targets, None)
    }

    /// Returns the calibrated probability that the predicted class of these logits is right.
    ///
    /// It does not apply to the other classes, and the predicted class never changes.
    pub fn confidence(&self, logits: &[f32]) -> f64 {
        self.predict(top_probability(logits))
    }

    /// Returns the value of the function at `score`; NaN at NaN.
    pub fn predict(&self, score: f64) -> f64 {
        if score.is_nan() {
            return f64::NAN;
        }
        let above = self.scores.partition_point(|&s| s <= score);
        let value = |i: usize| self.values.get(i).copied().unwrap_or(f64::NAN);
        if above == 0 || above == self.scores.len() {
            return value(above.saturating_sub(1));
        }
        let x0 = self.scores[above - 1];
        let x1 = self.scores[above];
        let y0 = value(above - 1);
        let y1 = value(above);
        // Each operation is monotone under rounding, so the function is too.
        (y0 + (y1 - y0) * ((score - x0) / (x1 - x0))).min(y1)
    }

    /// Iterates over the knots: scores in increasing order with the value at each.
    pub fn knots(&self) -> impl ExactSizeIterator<Item = (f64, f64)> {
        self.scores.iter().copied().zip(self.values.iter().copied())
    }

    /// Returns the number of samples of positive weight that it was fitted on.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Creates the function from blocks: a knot at both ends of each, one knot if it has a single score.
    fn from_blocks(blocks: &[Pool], n: usize) -> Self {
        let mut scores = Vec::new();
        let mut values = Vec::new();
        for block in blocks {
            scores.push(block.first);
            values.push(block.value);
            if block.last > block.first {
                scores.push(block.last);
                values.push(block.value);
            }
        }
        Self { scores, values, n }
    }

    /// Checks what `predict` relies on: there are knots, values never fall, and no gap overflows f64.
    fn checked(self) -> Result<Self, MetricsError> {
        let (Some(x0), Some(x1)) = (self.scores.first(), self.scores.last()) else {
            return Err(MetricsError::NoSamples);
        };
        let (Some(y0), Some(y1)) = (self.values.first(), self.values.last()) else {
            return Err(MetricsError::NoSamples);
        };
        let rising = self.scores.is_sorted_by(|a, b| a < b) && self.values.is_sorted();
        // Of sorted numbers, a finite range makes every one of them finite.
        if rising && (x1 - x0).is_finite() && (y1 - y0).is_finite() && self.scores.len() == self.values.len()
        {
            Ok(self)
        } else {
            Err(MetricsError::Knots)
        }
    }
}

/// Merges sorted samples with equal scores into their weighted means.
fn average_ties(samples: &[Pool]) -> Vec<Pool> {
    samples
        .chunk_by(|a, b| a.first == b.first)
        .filter_map(|ties| ties.iter().copied().reduce(merge))
        .collect()
}

/// Pools adjacent violators in one pass with a stack, linear in the number of blocks.
fn pool_violators(samples: Vec<Pool>) -> Vec<Pool> {
    let mut stack: Vec<Pool> = Vec::with_capacity(samples.len());
    for mut block in samples {
        // Blocks of equal value are merged too: fewer knots, the same function.
        while let Some(before) = stack.pop_if(|before| before.value >= block.value) {
            block = merge(before, block);
        }
        stack.push(block);
    }
    stack
}

/// Merges two pools. The mean is moved, not recomputed from sums, so that equal values stay exactly equal.
fn merge(a: Pool, b: Pool) -> Pool {
    let weight = a.weight + b.weight;
    Pool { first: a.first, last: b.last, value: a.value + (b.value - a.value) * (b.weight / weight), weight }
}

fn top_probability(logits: &[f32]) -> f64 {
    let top = f64::from(lanes::max(logits));
    1.0 / logits.iter().map(|&z| libm::exp(f64::from(z) - top)).sum::<f64>()
}

/// The stored knots, which are checked when they are read.
#[derive(Deserialize)]
struct StoredIsotonic {
    scores: Vec<f64>,
    values: Vec<f64>,
    n: usize,
}

impl TryFrom<StoredIsotonic> for Isotonic {
    type Error = MetricsError;
    fn try_from(StoredIsotonic { scores, values, n }: StoredIsotonic) -> Result<Self, MetricsError> {
        Self { scores, values, n }.checked()
    }
}

#[cfg(test)]
mod tests;
