//! What a model keeps to recognise samples unlike those of its training.

use std::ops::RangeInclusive;

use crate::checked;
use crate::error::MetricsError;
use crate::held_out::LabelLogits;

/// The reference of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reference {
    /// The held-out labels; none if the model has no held-out labels.
    pub labels: LabelLogits,
    /// The features of unlabelled samples; `None` if there were too few.
    pub features: Option<ReferenceFeatures>,
}

/// The features of unlabelled samples that were kept out of the fit of the projection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReferenceFeatures {
    /// The number of features per sample.
    pub dimensions: usize,
    /// The features of the samples, row by row.
    pub rows: Vec<f32>,
    /// The mean features of each class, row by row: averages over unlabelled samples, weighted by their probabilities.
    pub class_means: Vec<f32>,
    /// Directions of a projected vector, row by row, whose coordinates are the features; empty if the features are its first
    /// `dimensions` numbers.
    pub directions: Vec<f32>,
}

/// The smallest number of unlabelled samples that is a reference.
pub const MIN_REFERENCE: usize = 250;
/// The largest number of unlabelled samples that are kept out of the projection.
pub const MAX_REFERENCE: usize = 1_000;
/// The largest share of the unlabelled samples that are kept out of the projection, as a divisor.
const REFERENCE_DIVISOR: usize = 10;
/// The smallest number of samples per feature.
const MIN_SAMPLES_PER_DIMENSION: usize = 4;
/// The range of the number of features, unless a vector has fewer: twice the number of classes, clamped to it.
const DIMENSIONS: RangeInclusive<usize> = 64..=200;

/// The largest size of a feature. Beyond it, squares of the sums would lose all precision.
const MAX_FEATURE: f32 = 1e9;

/// Returns how many of some unlabelled samples are kept out of the projection; 0 if there are too few.
pub fn reference_samples(unlabelled: usize) -> usize {
    let samples = (unlabelled / REFERENCE_DIVISOR).min(MAX_REFERENCE);
    if samples < MIN_REFERENCE { 0 } else { samples }
}

/// Returns the number of features for a model with this number of classes, whose projected vectors have `width` numbers. The
/// span of the class means must leave dimensions in which samples can be strange, and a covariance needs several samples per
/// dimension.
pub fn reference_dimensions(classes: usize, width: usize, samples: usize) -> usize {
    let dimensions = classes.saturating_mul(2).clamp(*DIMENSIONS.start(), *DIMENSIONS.end());
    dimensions.min(samples / MIN_SAMPLES_PER_DIMENSION).min(width)
}

impl ReferenceFeatures {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.rows.len() / self.dimensions.max(1)
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Computes the features of a projected vector.
    pub fn of_projected(&self, vector: &[f32], features: &mut Vec<f64>) {
        features.clear();
        if self.directions.is_empty() {
            features.extend(vector.iter().take(self.dimensions).map(|&number| f64::from(number)));
            return;
        }
        for direction in self.directions.chunks_exact(vector.len().max(1)) {
            let products = direction.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b));
            features.push(products.sum());
        }
    }

    /// Checks the lengths of the lists and the range of their numbers, which a file does not guarantee.
    ///
    /// # Errors
    /// If they contradict each other, or a number is not finite or too large.
    pub fn check(&self) -> Result<(), MetricsError> {
        let dimensions = self.dimensions;
        checked::parameter("number of reference features", dimensions as f64, "between 1 and 200", |_| {
            (1..=*DIMENSIONS.end()).contains(&dimensions)
        })?;
        let samples = self.len();
        checked::parameter("number of reference samples", samples as f64, "between 250 and 1,000", |_| {
            (MIN_REFERENCE..=MAX_REFERENCE).contains(&samples)
        })?;
        for (what, numbers) in [
            ("reference feature", &self.rows),
            ("class mean", &self.class_means),
            ("direction", &self.directions),
        ] {
            checked::length("numbers in whole rows of features", 0, numbers.len() % dimensions)?;
            let is_plain = |number: &f32| number.abs() <= MAX_FEATURE;
            if let Some(index) = numbers.iter().position(|number| !is_plain(number)) {
                let value = numbers[index].into();
                return Err(MetricsError::Value { what, index, value, allowed: "between -1e9 and 1e9" });
            }
        }
        Ok(())
    }
}
