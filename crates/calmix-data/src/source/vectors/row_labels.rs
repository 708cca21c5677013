//! The label, subset and group of every row.

use std::collections::{BTreeMap, HashMap};

use calmix_formats::labels::drawn::Drawn;
use calmix_formats::vectors::{VectorBlock, VectorSource};

use super::label_list::{LabelList, ListedRow, SUBSETS};
use crate::error::DataError;
use crate::groups::NO_GROUP;
use crate::manifest::NO_LABEL;

/// The maximum number of labels: a class for each is held in memory.
const MAX_CLASSES: usize = calmix_io::class_names::MAX_CLASSES;

/// Labels and subsets at five bytes per row, groups, if any, at four more, and draws at some tens per label.
#[derive(Debug)]
pub(super) struct RowLabels {
    list: Option<LabelList>,
    /// The number of each label, in order of occurrence.
    numbers: BTreeMap<String, u32>,
    /// The class of each row; the number of its label until all labels are known.
    classes: Vec<u32>,
    subsets: Vec<u8>,
    counts: [u64; SUBSETS.len()],
    groups: RowGroups,
    /// How the label of each row was drawn, of those rows of which it is known.
    drawn: BTreeMap<u64, Drawn>,
    /// The weight of the label of each row, of those whose weight is not 1.
    weights: BTreeMap<u64, f64>,
}

/// Groups by row.
#[derive(Debug, Default)]
struct RowGroups {
    /// The number of each group.
    numbers: HashMap<String, u32>,
    /// The group number of each row, up to the last row with a group.
    rows: Vec<u32>,
}

impl RowLabels {
    /// Uses the labels of a list, or of the blocks of vectors.
    pub(super) fn new(list: Option<LabelList>) -> Self {
        let counts = [0; SUBSETS.len()];
        Self {
            list,
            numbers: BTreeMap::new(),
            classes: Vec::new(),
            subsets: Vec::new(),
            counts,
            groups: RowGroups::default(),
            drawn: BTreeMap::new(),
            weights: BTreeMap::new(),
        }
    }

    /// Adds the labels and groups of a block of rows. Groups of the list, if any, replace those of the vectors' own file.
    pub(super) fn add(
        &mut self,
        source: &VectorSource,
        block: &mut VectorBlock,
        numbers: usize,
    ) -> Result<(), DataError> {
        let mut own_labels = block.labels.take().unwrap_or_default().into_iter();
        let mut own_groups = block.groups.take().unwrap_or_default().into_iter();
        for (index, row) in (0..block.vectors.len() / numbers).zip(block.first..) {
            let own = ListedRow {
                group: own_groups.next().flatten(),
                ..ListedRow::of_label(own_labels.next().flatten())
            };
            let ListedRow { label, subset, group, drawn, weight } = match &mut self.list {
                Some(list) => {
                    let id = block.ids.as_ref().and_then(|ids| ids.get(index)).map(String::as_str);
                    let listed = list.take(row, id)?;
                    let group = if list.has_groups { listed.group } else { own.group };
                    ListedRow { group, ..listed }
                }
                None => own,
            };
            self.groups.set(row, group);
            if drawn != Drawn::Given {
                self.drawn.insert(row, drawn);
            }
            #[expect(clippy::float_cmp, reason = "a weight that is not given is exactly 1")]
            if weight != 1.0 {
                self.weights.insert(row, weight);
            }
            let Some(label) = label else {
                self.push(NO_LABEL, 1);
                continue;
            };
            let next = self.numbers.len();
            if next == MAX_CLASSES && !self.numbers.contains_key(&label) {
                let (path, row) = source.location(row);
                let problem = format!("more than {MAX_CLASSES} different labels");
                let error = DataError::limit(path, problem).at(format!("row {row}"));
                return Err(error.hint("name the column of the labels with --label-column"));
            }
            let number = *self.numbers.entry(label).or_insert(next as u32);
            self.push(number, subset);
        }
        Ok(())
    }

    fn push(&mut self, number: u32, subset: u8) {
        // Rows of the subset `unlabelled` have no label, whatever the list says.
        self.classes.push(if subset == 1 { NO_LABEL } else { number });
        self.subsets.push(subset);
        self.counts[usize::from(subset)] += 1;
    }

    /// Finishes after the last row: checks that the whole list was used, and returns the classes in order.
    pub(super) fn finish(&mut self) -> Result<Vec<String>, DataError> {
        if let Some(list) = self.list.take() {
            list.finish()?;
        }
        let mut used = vec![false; self.numbers.len()];
        for &number in self.classes.iter().filter(|&&number| number != NO_LABEL) {
            used[number as usize] = true;
        }
        let mut labels: Vec<(String, u32)> = std::mem::take(&mut self.numbers).into_iter().collect();
        labels.retain(|(_, number)| used[*number as usize]);
        if labels.iter().all(|(label, _)| whole(label).is_some()) {
            labels.sort_by_key(|(label, _)| whole(label));
        }
        let mut class_of = vec![NO_LABEL; used.len()];
        for (class, (_, number)) in (0..).zip(&labels) {
            class_of[*number as usize] = class;
        }
        for class in self.classes.iter_mut().filter(|class| **class != NO_LABEL) {
            *class = class_of[*class as usize];
        }
        Ok(labels.into_iter().map(|(label, _)| label).collect())
    }

    /// Returns whether a subset has rows.
    pub(super) fn has(&self, subset: usize) -> bool {
        self.counts.get(subset).is_some_and(|&count| count > 0)
    }

    pub(super) fn subset(&self, row: u64) -> usize {
        self.subsets.get(row as usize).copied().unwrap_or_default().into()
    }

    /// Returns the number of rows of a class.
    pub(super) fn count_of(&self, class: u32) -> u64 {
        self.classes.iter().filter(|&&other| other == class).count() as u64
    }

    /// Returns the group of a row, as a text that is unique to the group.
    pub(super) fn group(&self, row: u64) -> Option<String> {
        let number = self.groups.rows.get(row as usize).copied().filter(|&number| number != NO_GROUP);
        number.map(|number| number.to_string())
    }

    pub(super) fn drawn(&self, row: u64) -> Drawn {
        self.drawn.get(&row).copied().unwrap_or_default()
    }

    pub(super) fn weight(&self, row: u64) -> f64 {
        self.weights.get(&row).copied().unwrap_or(1.0)
    }

    pub(super) fn class(&self, row: u64) -> Option<u32> {
        self.classes.get(row as usize).copied().filter(|&class| class != NO_LABEL)
    }
}

impl RowGroups {
    fn set(&mut self, row: u64, group: Option<String>) {
        let Some(group) = group else { return };
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(group).or_insert(next);
        self.rows.resize(row as usize, NO_GROUP);
        self.rows.push(number);
    }
}

/// Parses a label as an integer, only in canonical spelling, so that `7` and `07` remain two labels.
fn whole(label: &str) -> Option<i128> {
    label.parse::<i128>().ok().filter(|number| number.to_string() == label)
}
