//! Counts the groups of the labelled samples of each subset.

use std::collections::{HashMap, HashSet};

use crate::data_warning::DataWarning;
use crate::dataset::Dataset;
use crate::error::DataError;

/// The groups with labelled samples, at eight bytes each.
#[derive(Debug, Default)]
pub(super) struct LabelledGroups {
    /// The first subset of each group, and whether there is a second.
    subsets_of: HashMap<u32, (u16, bool)>,
    names: Vec<String>,
    /// The first two subsets that share a group.
    shared: Option<[String; 2]>,
}

impl LabelledGroups {
    /// Counts the groups of the labelled samples of a subset; `None` if the dataset has no groups.
    pub(super) fn count(&mut self, dataset: &Dataset, subset: &str) -> Result<Option<u64>, DataError> {
        if !dataset.has_groups() {
            return Ok(None);
        }
        // There are at most 64 subsets.
        let number = self.names.len() as u16;
        self.names.push(subset.to_owned());
        let mut groups = 0;
        let mut seen: HashSet<u32> = HashSet::new();
        for record in dataset.records(dataset.subset(subset)?) {
            let (id, record) = record?;
            if record.class().is_none() {
                continue;
            }
            let Some(group) = dataset.group(id)? else {
                groups += 1;
                continue;
            };
            if !seen.insert(group) {
                continue;
            }
            groups += 1;
            let (first, has_second) = self.subsets_of.entry(group).or_insert((number, false));
            if *first != number {
                *has_second = true;
                let first = self.names.get(usize::from(*first)).cloned().unwrap_or_default();
                self.shared.get_or_insert_with(|| [first, subset.to_owned()]);
            }
        }
        Ok(Some(groups))
    }

    /// Returns a warning if groups have labels in several subsets.
    pub(super) fn in_two_subsets(self) -> Option<DataWarning> {
        let groups = self.subsets_of.values().filter(|(_, has_second)| *has_second).count() as u64;
        self.shared.map(|subsets| DataWarning::GroupsInTwoSubsets { groups, subsets })
    }
}
