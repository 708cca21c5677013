//! A model: a projection of features and the head on it.

use calmix_core::matrix::Matrix;

use crate::error::HeadError;
use crate::network::{Head, HeadShape};
use crate::projection::Projection;

/// A projection of features and the head on it: features in, logits out.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadModel {
    projection: Projection,
    head: Head,
}

impl HeadModel {
    /// Combines a projection with a head on its vectors.
    ///
    /// # Errors
    /// If the head reads vectors of another length.
    pub fn new(projection: Projection, head: Head) -> Result<Self, HeadError> {
        let reads = head.shape().width;
        if reads != projection.dimensions() {
            let dimensions = projection.dimensions();
            return Err(HeadError::Input(format!(
                "a projection to {dimensions} dimensions, but a head that reads {reads}"
            )));
        }
        Ok(Self { projection, head })
    }

    /// Returns the projection.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Returns the head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Folds the directions of the projection into the weights of the head, if that takes fewer multiplications: a linear head
    /// with few classes then reads each feature once per class instead of once per direction. The last bits of its logits differ.
    ///
    /// # Errors
    /// If projection and head contradict each other.
    pub fn folded(&self) -> Result<Self, HeadError> {
        let HeadShape { width: dimensions, hidden, classes } = self.head.shape();
        let width = self.projection.width();
        // Decide before folding: few directions of many features would fold into far more numbers than the model has.
        let is_less =
            width.saturating_mul(classes) < dimensions.saturating_mul(width.saturating_add(classes));
        if hidden.is_some() || !is_less {
            return Ok(self.clone());
        }
        let mut numbers = folded_weights(&self.projection, &self.head, 1.0);
        let (_, biases) = self.head.numbers().split_at(classes * dimensions);
        numbers.extend_from_slice(biases);
        let head = Head::new(HeadShape { width, hidden: None, classes }, numbers)?;
        Self::new(self.projection.unrotated(), head)
    }

    /// Computes the logits of feature vectors, one after the other. The logits of a vector do not depend on the others.
    ///
    /// # Errors
    /// If the numbers do not divide into vectors.
    pub fn logits(&self, features: &[f32]) -> Result<Vec<f32>, HeadError> {
        let width = self.projection.width();
        let rows = features.len() / width.max(1);
        let vectors = self.projection.apply(Matrix::new(features, rows, width)?)?;
        Ok(self.head.forward(&vectors)?.logits)
    }
}

/// The maximum size of a folded head that is larger than the model: 2²⁷ numbers, 512 MiB.
const MAX_FOLDED: usize = 1 << 27;

/// Computes the weights of a linear head on features, class by class, from those on the directions of a projection, multiplied by
/// `scale`. `None` if the head has a hidden layer, or if the result would be far larger than projection and head.
pub fn scaled_weights(projection: &Projection, head: &Head, scale: f64) -> Option<Vec<f32>> {
    let HeadShape { hidden: None, classes, .. } = head.shape() else { return None };
    let folded = projection.width().checked_mul(classes)?;
    let unfolded = projection.rotation().len().saturating_add(head.numbers().len());
    (folded <= unfolded.max(MAX_FOLDED)).then(|| folded_weights(projection, head, scale))
}

/// Computes the weights of a linear head on features. Each is a sum in f64 that is rounded once.
fn folded_weights(projection: &Projection, head: &Head, scale: f64) -> Vec<f32> {
    let HeadShape { width, classes, .. } = head.shape();
    // A linear head has its matrix first, then its biases.
    let (weights, _) = head.numbers().split_at(classes * width);
    let mut folded = Vec::with_capacity(classes * projection.width());
    for row in weights.chunks_exact(width.max(1)) {
        folded.extend(unrotated(row, projection).into_iter().map(|number| (scale * number) as f32));
    }
    folded
}

fn unrotated(weights: &[f32], projection: &Projection) -> Vec<f64> {
    let directions = projection.rotation();
    if directions.is_empty() {
        return weights.iter().map(|&number| f64::from(number)).collect();
    }
    let mut sums = vec![0.0; projection.width()];
    for (&weight, direction) in weights.iter().zip(directions.chunks_exact(sums.len().max(1))) {
        for (sum, &number) in sums.iter_mut().zip(direction) {
            *sum += f64::from(weight) * f64::from(number);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

    use super::*;

    #[test]
    fn folded_model_has_the_same_logits() {
        let mut stream = Seed(3).stream(Domain::Init, 0, 0);
        let mut numbers =
            |count: usize| (0..count).map(|_| stream.uniform() as f32 - 0.5).collect::<Vec<f32>>();
        for (hidden, dimensions, is_folded) in [(None, 16, true), (None, 3, false), (Some(5), 16, false)] {
            let rows = numbers(40 * 24);
            let projection = Projection::fit(Matrix::new(&rows, 40, 24).unwrap(), dimensions).unwrap();
            let shape = HeadShape { width: dimensions, hidden, classes: 6 };
            let head = Head::new(shape, numbers(shape.numbers())).unwrap();
            let model = HeadModel::new(projection, head).unwrap();
            let folded = model.folded().unwrap();
            assert_eq!(folded.projection().rotation().is_empty(), is_folded, "{dimensions}");
            let expected = model.logits(&rows).unwrap();
            let found = folded.logits(&rows).unwrap();
            let far = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(expected.len() == 240 && far < 1e-5, "{far}");
        }
    }
}
