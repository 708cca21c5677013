//! Near-duplicates among the labelled samples: frames of a burst, crops of one photo, edited copies of a sentence.
//!
//! If two near-duplicates were in different folds, a head would be evaluated on a copy of its training data. Only labels of one
//! class are compared, by the cosine of their centred features before the projection. A sample joins a group only if it is a
//! near-duplicate of the first member of the group, so that a chain of similar samples does not become one group.

mod distance_limit;
#[cfg(test)]
mod tests;
mod unit_features;

use std::sync::atomic::AtomicBool;

pub use unit_features::{LabelledFeatures, MAX_LABELS};

use distance_limit::{DistanceLimit, distance_limits};
use unit_features::{BLOCK, MAX_REFERENCE, UnitFeatures, distance};

use crate::error::HeadError;
use crate::progress::check_stop;

/// The number of labels that are near-duplicates of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedCopies {
    /// The number of labels that were compared.
    pub labels: usize,
    /// The number of groups, including those of a single label.
    pub groups: usize,
}

impl LinkedCopies {
    /// Counts the groups of a list of group numbers.
    pub fn of(groups: &[u32]) -> Self {
        Self { labels: groups.len(), groups: calmix_metrics::groups::group_count(groups, groups.len()) }
    }

    /// Returns the number of labels beyond the first of their group.
    pub fn linked(self) -> usize {
        self.labels - self.groups
    }
}

/// Returns the number of unlabelled samples that [`link_copies`] needs as a reference: the fewer labels there are, the more other
/// samples must show how near distinct samples are.
pub fn unlabelled_needed(labels: usize) -> usize {
    MAX_REFERENCE.saturating_sub(labels)
}

/// Returns the group of each labelled sample. Two labels of a class are linked if fewer than 0.01 distinct labels are expected
/// within their distance, estimated from the distances to the neighbours of both. If fewer than 0.05 are expected, `is_copy`
/// decides: it is called with the two rows and may compare more than features, such as the pixels of images. Vectors without such
/// a gap are not linked.
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

/// Links the near-duplicates among the labels of one class, whose rows are ascending.
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
