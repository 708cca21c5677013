//! Near-duplicates among the labelled samples: frames of a burst, crops of one photo, edited copies of a sentence.
//!
//! A near-duplicate of a label in another fold would let the head of that fold see what it is evaluated on. Only labels of one
//! class are compared, by the cosine of their centred features before the projection. A sample joins a group only if it is a
//! near-duplicate of the first member of the group, so that a chain of similar samples does not become one group.

mod distance_limit;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;

use self::distance_limit::{DistanceLimit, distance_limits};
use crate::error::HeadError;
use crate::product::{Operand, multiply};
use crate::progress::check_stop;
use crate::projection::Projection;

/// The most labels that are compared: the work grows with the square of the labels of a class.
pub const MAX_LABELS: usize = 20_000;
/// The most samples whose distances show how near distinct samples are to each other.
const MAX_REFERENCE: usize = 4_000;
/// Rows that are multiplied at once.
const BLOCK: usize = 256;

/// The features of the labelled samples, and of some others to compare with.
#[derive(Debug, Clone, Copy)]
pub struct LabelledFeatures<'a> {
    /// One row for each labelled sample, in the order of their ids.
    pub features: Matrix<'a>,
    /// The class of each.
    pub classes: &'a [u32],
    /// Features of samples without a label: [`unlabelled_needed`] of them, or all if they are fewer.
    pub unlabelled: Matrix<'a>,
    /// The mean of the features of all samples.
    pub mean: &'a [f32],
}

/// How many labels are near-duplicates of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedCopies {
    /// The number of labels that were compared.
    pub labels: usize,
    /// The number of groups, with those of a single label.
    pub groups: usize,
}

impl LinkedCopies {
    /// Counts the groups of some labels.
    pub fn of(groups: &[u32]) -> Self {
        Self { labels: groups.len(), groups: calmix_metrics::groups::group_count(groups, groups.len()) }
    }

    /// The number of labels that are near-duplicates of the first one of their group.
    pub fn linked(self) -> usize {
        self.labels - self.groups
    }
}

/// The number of unlabelled samples that [`link_copies`] compares some labels with: the fewer labels there are, the more
/// other samples have to show how near distinct samples are.
pub fn unlabelled_needed(labels: usize) -> usize {
    MAX_REFERENCE.saturating_sub(labels)
}

/// Returns the group of each labelled sample. Two labels of a class are linked if they are so near to each other that, by the
/// distances to the neighbours of both, less than 0.01 distinct labels are expected that near. If fewer than 0.05 are expected,
/// `is_copy` decides, which is called with the two rows and may compare more than features, such as the pixels of images.
/// Vectors without such a gap are not linked.
///
/// # Errors
/// If the rows do not agree, or a vector is too long; the errors of `is_copy`; [`HeadError::Stopped`] if `stop` becomes true.
pub fn link_copies<E: From<HeadError>>(
    samples: LabelledFeatures<'_>,
    stop: &AtomicBool,
    mut is_copy: impl FnMut(usize, usize) -> Result<bool, E>,
) -> Result<Vec<u32>, E> {
    let unit = UnitFeatures::new(samples)?;
    let limits = distance_limits(&unit, stop)?;
    let mut groups: Vec<u32> = (0..unit.labels() as u32).collect();
    for rows in unit.rows_of_class.values() {
        link_class(&unit, rows, &limits, &mut groups, stop, &mut is_copy)?;
    }
    Ok(groups)
}

/// Features as centred vectors of unit length.
struct UnitFeatures {
    /// Those of the labelled samples.
    labelled: Vec<f32>,
    /// Those of samples that stand for all: some or all of the labelled ones, then unlabelled ones.
    reference: Vec<f32>,
    /// The distance between the labelled rows that are in the reference.
    stride: usize,
    width: usize,
    /// The labelled rows of each class, ascending.
    rows_of_class: BTreeMap<u32, Vec<usize>>,
}

impl UnitFeatures {
    fn new(samples: LabelledFeatures<'_>) -> Result<Self, HeadError> {
        let LabelledFeatures { features, classes, unlabelled, mean } = samples;
        let labels = features.rows();
        if classes.len() != labels || labels > MAX_LABELS {
            return Err(HeadError::Input(format!("{labels} labelled rows, but {} classes", classes.len())));
        }
        let projection = Projection::new(mean.to_vec(), Vec::new())?;
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

    fn labels(&self) -> usize {
        self.labelled.len() / self.width
    }

    /// The vectors of some labelled rows, one after the other.
    fn of(&self, rows: &[usize]) -> Vec<f32> {
        rows.iter().flat_map(|&row| &self.labelled[row * self.width..][..self.width]).copied().collect()
    }

    /// The cosines of some vectors with others, row by row.
    fn cosines(&self, vectors: &[f32], others: &[f32]) -> Vec<f32> {
        let rows = vectors.len() / self.width;
        let columns = others.len() / self.width;
        let mut cosines = vec![0.0; rows * columns];
        let others = Operand::new(others, columns, self.width).transposed();
        multiply(Operand::new(vectors, rows, self.width), others, 0.0, &mut cosines);
        cosines
    }
}

/// Links the labels of one class, whose rows are ascending.
fn link_class<E: From<HeadError>>(
    unit: &UnitFeatures,
    rows: &[usize],
    limits: &[DistanceLimit],
    groups: &mut [u32],
    stop: &AtomicBool,
    is_copy: &mut impl FnMut(usize, usize) -> Result<bool, E>,
) -> Result<(), E> {
    let vectors = unit.of(rows);
    let mut firsts: Vec<usize> = Vec::new();
    for start in (0..rows.len()).step_by(BLOCK) {
        check_stop(stop)?;
        let end = rows.len().min(start + BLOCK);
        let cosines =
            unit.cosines(&vectors[start * unit.width..end * unit.width], &vectors[..end * unit.width]);
        for (place, cosines) in (start..end).zip(cosines.chunks_exact(end)) {
            let row = rows[place];
            let mut found = None;
            for &first in &firsts {
                let distance = distance(cosines[first]);
                let limits = [limits[row], limits[rows[first]]];
                if limits.iter().all(|limit| distance < limit.copy)
                    || (limits.iter().all(|limit| distance < limit.doubtful) && is_copy(row, rows[first])?)
                {
                    found = Some(rows[first]);
                    break;
                }
            }
            match found {
                Some(first) => groups[row] = first as u32,
                None => firsts.push(place),
            }
        }
    }
    Ok(())
}

/// The distance between vectors of unit length with this cosine.
fn distance(cosine: f32) -> f64 {
    libm::sqrt((2.0 - 2.0 * f64::from(cosine)).max(0.0))
}
