//! A head with the projection below it: features in, logits out.

use calmix_core::matrix::Matrix;

use crate::error::HeadError;
use crate::network::Head;
use crate::projection::Projection;

/// A head with the projection below it.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadModel {
    projection: Projection,
    head: Head,
}

impl HeadModel {
    /// A head on the vectors of a projection.
    ///
    /// # Errors
    /// If it reads vectors of another length.
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

    /// The projection.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The logits of feature vectors, one after the other. Those of a vector do not depend on the other vectors.
    ///
    /// # Errors
    /// If they are not whole vectors.
    pub fn logits(&self, features: &[f32]) -> Result<Vec<f32>, HeadError> {
        let width = self.projection.width();
        let rows = features.len() / width.max(1);
        let vectors = self.projection.apply(Matrix::new(features, rows, width)?)?;
        Ok(self.head.forward(&vectors)?.logits)
    }
}
