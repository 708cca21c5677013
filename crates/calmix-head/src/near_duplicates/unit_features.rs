//! Features as centred vectors of unit length, to be compared by their cosine.

use std::collections::BTreeMap;

use calmix_core::matrix::Matrix;

use crate::error::HeadError;
use crate::product::{Operand, multiply};
use crate::projection::Projection;

/// The maximum number of labels that are compared: the work grows with the square of the labels of a class.
pub const MAX_LABELS: usize = 20_000;
/// The maximum number of samples whose distances show how near distinct samples are to each other.
pub(super) const MAX_REFERENCE: usize = 4_000;
/// The number of rows per matrix product.
pub(super) const BLOCK: usize = 256;

/// The features of the labelled samples, and of unlabelled ones as a reference.
#[derive(Debug, Clone, Copy)]
pub struct LabelledFeatures<'a> {
    /// One row for each labelled sample, in the order of their ids.
    pub features: Matrix<'a>,
    /// The class of each labelled sample.
    pub classes: &'a [u32],
    /// Features of samples without a label: [`unlabelled_needed`](super::unlabelled_needed) of them, or all if they are fewer.
    pub unlabelled: Matrix<'a>,
    /// The projection of the features, for the mean of all samples and the sets of features.
    pub projection: &'a Projection,
}

/// Features as centred vectors of unit length.
pub(super) struct UnitFeatures {
    /// The labelled samples.
    pub(super) labelled: Vec<f32>,
    /// The reference: some or all labelled samples, then unlabelled ones.
    pub(super) reference: Vec<f32>,
    /// The step between the labelled rows that are in the reference.
    pub(super) stride: usize,
    pub(super) width: usize,
    /// The labelled rows of each class, ascending.
    pub(super) rows_of_class: BTreeMap<u32, Vec<usize>>,
}

impl UnitFeatures {
    pub(super) fn new(samples: LabelledFeatures<'_>) -> Result<Self, HeadError> {
        let LabelledFeatures { features, classes, unlabelled, projection } = samples;
        let labels = features.rows();
        if classes.len() != labels || labels > MAX_LABELS {
            return Err(HeadError::Input(format!("{labels} labelled rows, but {} classes", classes.len())));
        }
        let projection = projection.unrotated();
        let width = projection.width();
        let labelled = projection.apply(features)?;
        let stride = labels.div_ceil(MAX_REFERENCE).max(1);
        let mut reference: Vec<f32> =
            labelled.chunks_exact(width).step_by(stride).flatten().copied().collect();
        if unlabelled.rows() > 0 {
            reference.extend(projection.apply(unlabelled)?);
        }
        let mut rows_of_class: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, &class) in classes.iter().enumerate() {
            rows_of_class.entry(class).or_default().push(row);
        }
        Ok(Self { labelled, reference, stride, width, rows_of_class })
    }

    pub(super) fn labels(&self) -> usize {
        self.labelled.len() / self.width
    }

    /// Copies the vectors of some labelled rows, one after the other.
    pub(super) fn of(&self, rows: &[usize]) -> Vec<f32> {
        rows.iter().flat_map(|&row| &self.labelled[row * self.width..][..self.width]).copied().collect()
    }

    /// Computes the cosines of some vectors with others, row by row.
    pub(super) fn cosines(&self, vectors: &[f32], others: &[f32]) -> Vec<f32> {
        let rows = vectors.len() / self.width;
        let columns = others.len() / self.width;
        let mut cosines = vec![0.0; rows * columns];
        let others = Operand::new(others, columns, self.width).transposed();
        multiply(Operand::new(vectors, rows, self.width), others, 0.0, &mut cosines);
        cosines
    }
}

/// Returns the distance between vectors of unit length with this cosine.
pub(super) fn distance(cosine: f32) -> f64 {
    libm::sqrt((2.0 - 2.0 * f64::from(cosine)).max(0.0))
}
