//! Near-duplicates among the labels of a run. They share a fold, so that the head of a fold is not evaluated on copies of its
//! training samples.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_data::groups::group_numbers;
use calmix_head::HeadError;
use calmix_head::near_duplicates::{
    LabelledFeatures, LinkedCopies, MAX_LABELS, link_copies, unlabelled_needed,
};
use calmix_head::projection::Projection;
use calmix_io::text::counted;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_recipe::Recipe;
use calmix_run::events::Note;

use crate::error::HeadsError;

/// The hint of the note: a better way to name groups, and how to turn the search off.
const HINT: &str = "name what belongs together in a column `group` of the labels, which is the safe way; \
                    labels.link_copies = false turns the search off";

/// The labels of a run, in groups of near-duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelCopies {
    /// The labels that were compared, ascending.
    ids: Vec<u64>,
    /// The group of each label; its number is that of its first label.
    groups: Vec<u32>,
    /// The number of labels, if there are too many to compare.
    too_many: Option<usize>,
}

impl LabelCopies {
    pub fn new(ids: Vec<u64>, groups: Vec<u32>) -> Self {
        Self { ids, groups, too_many: None }
    }

    /// Creates the result for labels that are too many to compare.
    pub fn too_many(labels: usize) -> Self {
        Self { too_many: Some(labels), ..Self::default() }
    }

    /// Returns whether to search the labels of a run for near-duplicates: not if the user named groups or turned the search off.
    pub fn are_searched(recipe: &Recipe, has_groups: bool) -> bool {
        recipe.labels.link_copies && !has_groups
    }

    /// Counts the labels and their groups.
    pub fn count(&self) -> LinkedCopies {
        LinkedCopies::of(&self.groups)
    }

    /// Returns the group numbers of some samples; empty if no two of them are near-duplicates.
    pub fn groups_of(&self, ids: &[u64]) -> Vec<u32> {
        let group = |id: &u64| self.ids.binary_search(id).ok().map(|place| self.groups[place]);
        group_numbers(&ids.iter().map(group).collect::<Vec<_>>())
    }

    /// Returns the note about near-duplicates that a run logs, if any.
    pub fn note(&self) -> Option<Note> {
        if let Some(labels) = self.too_many {
            let text = format!(
                "{} are too many to search for near-duplicates (at most {MAX_LABELS}): if some are copies of \
                 others, the guarantees do not hold",
                counted(labels as u64, "label")
            );
            return Some(Note { step: 0, text, hint: HINT.to_owned() });
        }
        let count = self.count();
        let linked = match count.linked() {
            1 => "1 is a near-duplicate of another label and shares its fold".to_owned(),
            linked => format!("{linked} are near-duplicates of another label and share its fold"),
        };
        let labels = counted(count.labels as u64, "label");
        let text = format!("{labels} in {}: {linked}", counted(count.groups as u64, "group"));
        (count.linked() > 0).then(|| Note { step: 0, text, hint: HINT.to_owned() })
    }
}

/// Searches the labels of a run on vectors for near-duplicates.
///
/// # Errors
/// If vectors cannot be read; [`HeadsError::Stopped`] if `stop` becomes true.
pub fn link_labels(
    recipe: &Recipe,
    samples: &RunSamples,
    projection: &Projection,
    stop: &AtomicBool,
) -> Result<LabelCopies, HeadsError> {
    if !LabelCopies::are_searched(recipe, samples.dataset.has_groups()) {
        return Ok(LabelCopies::default());
    }
    let unlabelled = samples.unlabelled_ids();
    let search = CopySearch { labelled: samples.labelled(), unlabelled: &unlabelled, projection, stop };
    let read = |id: u64, numbers: &mut Vec<f32>| -> Result<(), HeadsError> {
        let start = numbers.len();
        samples.dataset.vector(id, numbers)?;
        numbers.truncate(start + projection.width());
        Ok(())
    };
    search.by_features(|id| Ok(samples.class_of(id)?), read)
}

/// Selects the unlabelled samples that labels are compared with, evenly spread if there are more than needed.
pub fn compared_unlabelled(labelled: &[u64], unlabelled: &[u64]) -> Vec<u64> {
    let needed = unlabelled_needed(labelled.len());
    let mut others: Vec<u64> = unlabelled.to_vec();
    others.retain(|id| labelled.binary_search(id).is_err());
    let stride = others.len().div_ceil(needed.max(1)).max(1);
    others.into_iter().step_by(stride).take(needed).collect()
}

/// The samples among which near-duplicates are searched for.
pub(crate) struct CopySearch<'a> {
    /// The labels, ascending.
    pub(crate) labelled: &'a [u64],
    /// The samples that are trained on without a label; those that are also labelled are left out.
    pub(crate) unlabelled: &'a [u64],
    /// The projection of the features.
    pub(crate) projection: &'a Projection,
    pub(crate) stop: &'a AtomicBool,
}

impl CopySearch<'_> {
    /// Links labels by the distances between their features. `read` appends the features of a sample before the projection.
    pub(crate) fn by_features(
        &self,
        class_of: impl Fn(u64) -> Result<Option<u32>, HeadsError>,
        mut read: impl FnMut(u64, &mut Vec<f32>) -> Result<(), HeadsError>,
    ) -> Result<LabelCopies, HeadsError> {
        if self.labelled.len() > MAX_LABELS {
            return Ok(LabelCopies::too_many(self.labelled.len()));
        }
        let width = self.projection.width();
        let mut ids = Vec::new();
        let mut classes = Vec::new();
        let mut features = Vec::new();
        for &id in self.labelled {
            if let Some(class) = class_of(id)? {
                ids.push(id);
                classes.push(class);
                read(id, &mut features)?;
            }
        }
        let mut unlabelled = Vec::new();
        for id in compared_unlabelled(self.labelled, self.unlabelled) {
            read(id, &mut unlabelled)?;
        }
        let samples = LabelledFeatures {
            features: Matrix::new(&features, ids.len(), width)?,
            classes: &classes,
            unlabelled: Matrix::new(&unlabelled, unlabelled.len() / width.max(1), width)?,
            projection: self.projection,
        };
        let groups = link_copies(samples, self.stop, |_, _| Ok::<_, HeadError>(false))?;
        Ok(LabelCopies::new(ids, groups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_labels_share_a_group() {
        let copies = LabelCopies::new(vec![2, 5, 7, 9], vec![0, 1, 0, 1]);
        assert_eq!(copies.groups_of(&[1, 2, 5, 7, 8, 9]), [0, 1, 2, 1, 3, 2]);
        assert_eq!(copies.count(), LinkedCopies { labels: 4, groups: 2 });
        let note = copies.note().unwrap();
        assert_eq!(
            note.text,
            "4 labels in 2 groups: 2 are near-duplicates of another label and share its fold"
        );
        assert!(note.hint.contains("labels.link_copies = false"));
    }

    #[test]
    fn labels_without_copies_have_no_groups() {
        let copies = LabelCopies::new(vec![2, 5], vec![0, 1]);
        assert_eq!(copies.groups_of(&[2, 5, 6]), [0; 0]);
        assert!(copies.note().is_none() && LabelCopies::default().note().is_none());
    }

    #[test]
    fn one_copy_is_counted_in_the_singular() {
        let note = LabelCopies::new(vec![2, 5], vec![0, 0]).note().unwrap();
        assert_eq!(
            note.text,
            "2 labels in 1 group: 1 is a near-duplicate of another label and shares its fold"
        );
    }

    #[test]
    fn too_many_labels_are_reported() {
        let note = LabelCopies::too_many(30_000).note().unwrap();
        assert!(note.text.starts_with("30,000 labels are too many"), "{}", note.text);
    }
}
