//! The scores of each class that a model stores beside a draw of all labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kept_rows::kept_rows;
use crate::groups::select_groups;

/// Labels with their score by LAC, enough of every class for a threshold of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassScores {
    /// The true class of each label.
    pub label: Vec<u32>,
    /// The score of the true class by LAC.
    pub lac: Vec<f64>,
    /// The [group](crate::groups) of each label; empty if each is a group of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<u32>,
}

/// The largest number of labels of a class: a coverage of 99% needs 99.
const MAX_PER_CLASS: usize = 100;
/// The largest number of labels of all classes. With more than 1,000 classes, each has fewer.
const MAX_LABELS: usize = 100_000;

impl ClassScores {
    /// Draws labels of each class from all of them: their classes, scores, groups and ids.
    pub(super) fn draw(label: &[u32], lac: &[f64], group: &[u32], ids: &[u64]) -> Self {
        let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, &class) in label.iter().enumerate() {
            classes.entry(class).or_default().push(row);
        }
        let most = (MAX_LABELS / classes.len().max(1)).clamp(1, MAX_PER_CLASS);
        let mut rows = Vec::new();
        for of_class in classes.into_values() {
            let ids: Vec<u64> = of_class.iter().filter_map(|&row| ids.get(row).copied()).collect();
            let groups = select_groups(group, &of_class);
            rows.extend(kept_rows(&ids, &groups, most).into_iter().map(|row| of_class[row]));
        }
        rows.sort_unstable();
        Self {
            label: rows.iter().map(|&row| label[row]).collect(),
            lac: rows.iter().map(|&row| lac[row]).collect(),
            group: select_groups(group, &rows),
        }
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.label.is_empty()
    }

    /// Returns whether the lists have the same length of a bounded size, which a file does not guarantee.
    pub(super) fn is_sound(&self) -> bool {
        let n = self.label.len();
        n <= MAX_LABELS && self.lac.len() == n && (self.group.is_empty() || self.group.len() == n)
    }
}
