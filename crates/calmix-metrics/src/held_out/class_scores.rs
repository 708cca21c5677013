//! The choice of the held-out labels that a model stores, if there are too many: a random draw, and enough of each class.

use std::collections::BTreeMap;

use calmix_core::rng::{Domain, Seed};
use serde::{Deserialize, Serialize};

use crate::groups::{rows_of_groups, select_groups};

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
        let max_rows = (MAX_LABELS / classes.len().max(1)).clamp(1, MAX_PER_CLASS);
        let mut rows = Vec::new();
        for of_class in classes.into_values() {
            let ids: Vec<u64> = of_class.iter().filter_map(|&row| ids.get(row).copied()).collect();
            let groups = select_groups(group, &of_class);
            rows.extend(kept_rows(&ids, &groups, max_rows).into_iter().map(|row| of_class[row]));
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

/// Draws at most `max_rows` rows; returns them ascending. Their ids decide which.
///
/// Groups are drawn with the same probability, whatever their size: the same number of rows of each, or, if there
/// are more groups than rows, one row of some of the groups. The weight of a group does not depend on how many of its rows
/// are stored.
pub(super) fn kept_rows(ids: &[u64], groups: &[u32], max_rows: usize) -> Vec<usize> {
    let key = |row: usize| (Seed(0).stream(Domain::Conformal, 0, ids[row]).next_u64(), ids[row]);
    let mut rows: Vec<usize> = (0..ids.len()).collect();
    if rows.len() <= max_rows {
        return rows;
    }
    if groups.is_empty() {
        rows.sort_by_cached_key(|&row| key(row));
        rows.truncate(max_rows);
    } else {
        let mut of_groups = rows_of_groups(groups, ids.len());
        let each = (max_rows / of_groups.len().max(1)).max(1);
        for rows in &mut of_groups {
            rows.sort_by_cached_key(|&row| key(row));
            rows.truncate(each);
        }
        // Sorting groups by their lowest key would prefer large groups, whose lowest key is lower.
        of_groups.sort_by_cached_key(|rows| {
            let group = rows.first().and_then(|&row| groups.get(row)).copied().unwrap_or_default();
            (Seed(0).stream(Domain::Group, 1, u64::from(group)).next_u64(), group)
        });
        rows = of_groups.into_iter().flatten().take(max_rows).collect();
    }
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_drawn_whatever_their_size() {
        // Group 0 has half of the rows, the others one each.
        let groups: Vec<u32> = (0..200).map(|row| if row < 100 { 0 } else { row - 99 }).collect();
        let mut largest = 0;
        for draw in 0..400_u64 {
            let ids: Vec<u64> = (0..200).map(|row| 1_000 * draw + row).collect();
            let shifted: Vec<u32> = groups.iter().map(|group| group + 1_000 * draw as u32).collect();
            let rows = kept_rows(&ids, &shifted, 20);
            assert!(rows.len() == 20 && rows.is_sorted());
            let of_largest = rows.iter().filter(|&&row| row < 100).count();
            assert!(of_largest <= 1, "{of_largest}");
            largest += of_largest;
        }
        // 20 of 101 groups: 79 of 400 draws, with a standard deviation of 8.
        assert!((55..=103).contains(&largest), "{largest}");
    }

    #[test]
    fn few_groups_share_the_rows() {
        let groups: Vec<u32> = (0..300).map(|row| row % 3).collect();
        let ids: Vec<u64> = (0..300).collect();
        let rows = kept_rows(&ids, &groups, 20);
        for group in 0..3 {
            assert_eq!(rows.iter().filter(|&&row| groups[row] == group).count(), 6);
        }
    }
}
