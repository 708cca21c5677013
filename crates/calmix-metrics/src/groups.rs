//! Groups of samples that are not independent of each other: frames of a video, photos of one patient, crops of an image.
//!
//! A list has the number of the group of each sample; an empty list means that each sample is a group of its own. Samples of
//! one group never go into different folds, and a group counts as one observation, however many samples it has: a guarantee
//! is then about one sample of a new group (Lee, Barber, Willett: "Distribution-free inference with hierarchical data", 2023,
//! arXiv 2306.06342).

use std::collections::{BTreeMap, BTreeSet};

use calmix_core::rng::{Domain, Seed};

/// Returns the rows of each group, ascending; groups are in the order of their first row.
pub fn rows_of_groups(groups: &[u32], samples: usize) -> Vec<Vec<usize>> {
    if groups.is_empty() {
        return (0..samples).map(|row| vec![row]).collect();
    }
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (row, &group) in groups.iter().enumerate().take(samples) {
        let place = *places.entry(group).or_insert(rows.len());
        if place == rows.len() {
            rows.push(Vec::new());
        }
        rows[place].push(row);
    }
    rows
}

/// Returns the number of groups of some samples.
pub fn group_count(groups: &[u32], samples: usize) -> usize {
    if groups.is_empty() {
        return samples;
    }
    groups.iter().collect::<BTreeSet<_>>().len()
}

/// Returns the mean of each group; the values themselves if each sample is a group of its own.
pub fn group_means(values: &[f64], groups: &[u32]) -> Vec<f64> {
    if groups.is_empty() {
        return values.to_vec();
    }
    let mean = |rows: Vec<usize>| rows.iter().map(|&row| values[row]).sum::<f64>() / rows.len() as f64;
    rows_of_groups(groups, values.len()).into_iter().map(mean).collect()
}

/// Draws one row of each group; the rows are ascending. The draw depends on the number of the group and on the order of
/// its rows.
pub fn one_of_each_group(groups: &[u32], samples: usize, seed: Seed) -> Vec<usize> {
    if groups.is_empty() {
        return (0..samples).collect();
    }
    let mut drawn: Vec<usize> = Vec::new();
    for rows in rows_of_groups(groups, samples) {
        let group = groups[rows[0]];
        drawn.push(rows[seed.stream(Domain::Group, 0, u64::from(group)).index(rows.len())]);
    }
    drawn.sort_unstable();
    drawn
}

/// Returns the groups of some of the samples, in the order of these rows.
pub fn select_groups(groups: &[u32], rows: &[usize]) -> Vec<u32> {
    rows.iter().filter_map(|&row| groups.get(row).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ungrouped_samples_are_their_own_group() {
        assert_eq!(rows_of_groups(&[], 3), [[0], [1], [2]]);
        assert_eq!(group_count(&[], 3), 3);
        assert_eq!(group_means(&[1.0, 4.0], &[]), [1.0, 4.0]);
        assert_eq!(one_of_each_group(&[], 3, Seed(0)), [0, 1, 2]);
        assert_eq!(select_groups(&[], &[1]), [0; 0]);
    }

    #[test]
    fn group_counts_once() {
        let groups = [7, 2, 7, 9];
        assert_eq!(rows_of_groups(&groups, 4), [vec![0, 2], vec![1], vec![3]]);
        assert_eq!(group_count(&groups, 4), 3);
        assert_eq!(group_means(&[1.0, 5.0, 3.0, 4.0], &groups), [2.0, 5.0, 4.0]);
        assert_eq!(select_groups(&groups, &[3, 0]), [9, 7]);
        let mut firsts = 0;
        for seed in 0..100 {
            let drawn = one_of_each_group(&groups, 4, Seed(seed));
            assert!(drawn == [0, 1, 3] || drawn == [1, 2, 3], "{drawn:?}");
            firsts += usize::from(drawn[0] == 0);
        }
        assert!((30..70).contains(&firsts), "{firsts}");
    }
}
