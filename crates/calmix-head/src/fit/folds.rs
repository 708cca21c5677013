//! Folds of the labelled samples.

use std::collections::{BTreeMap, BTreeSet};

use calmix_core::rng::{Domain, Seed};
use calmix_metrics::groups::{rows_of_groups, select_groups};

use crate::samples::{HeadSamples, TrainingRows};

/// The labelled rows in folds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Folds {
    /// The rows of each fold, ascending; none is empty.
    pub(crate) rows: Vec<Vec<usize>>,
    /// The rows whose class has no label outside their fold: the head of the fold cannot know that class.
    pub(crate) unseen: BTreeSet<usize>,
}

/// Deals the labelled rows into folds without dividing a group; each class is spread over as many folds as it has groups for.
/// There are no folds if every class is in a single one: no head of a fold would know the class of its held-out rows.
pub(crate) fn folds(samples: &HeadSamples<'_>, rows: &TrainingRows, count: usize, seed: Seed) -> Folds {
    let groups = labelled_groups(samples, rows);
    let mut classes: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (place, group) in groups.iter().enumerate() {
        for class in group.iter().filter_map(|&row| samples.label(row)) {
            classes.entry(class).or_default().insert(place);
        }
    }
    let (single, several): (Vec<_>, Vec<_>) = classes.into_values().partition(|groups| groups.len() == 1);
    let mut fold_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places = (0..count).cycle();
    // Classes with a single group come last, so that they do not change where the others are.
    for of_class in several.into_iter().chain(single) {
        // A group of several classes was dealt with the first of them.
        let mut members: Vec<usize> =
            of_class.into_iter().filter(|group| !fold_of.contains_key(group)).collect();
        let key = |group: usize| groups[group].first().map_or(0, |&row| samples.ids[row]);
        members.sort_by_cached_key(|&group| seed.stream(Domain::Fold, 0, key(group)).next_u64());
        fold_of.extend(members.into_iter().zip(&mut places));
    }
    let mut folds = vec![Vec::new(); count];
    for (group, fold) in fold_of {
        folds[fold].extend(&groups[group]);
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds.retain(|fold| !fold.is_empty());
    let unseen = unseen(samples, &folds);
    if unseen.len() == folds.iter().map(Vec::len).sum::<usize>() {
        return Folds::default();
    }
    Folds { rows: folds, unseen }
}

/// Returns the labelled rows of each group, in the order of their first row.
fn labelled_groups(samples: &HeadSamples<'_>, rows: &TrainingRows) -> Vec<Vec<usize>> {
    let labelled: Vec<usize> =
        rows.labelled.iter().copied().filter(|&row| samples.label(row).is_some()).collect();
    let groups = select_groups(samples.groups, &labelled);
    let mut of_groups = rows_of_groups(&groups, labelled.len());
    for rows in &mut of_groups {
        for row in rows.iter_mut() {
            *row = labelled[*row];
        }
        // A group is identified by its lowest row, whatever the order of the rows.
        rows.sort_unstable();
    }
    of_groups
}

/// Returns the rows whose class has no label outside their fold.
fn unseen(samples: &HeadSamples<'_>, folds: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut folds_of_class: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (fold, rows) in folds.iter().enumerate() {
        for class in rows.iter().filter_map(|&row| samples.label(row)) {
            folds_of_class.entry(class).or_default().insert(fold);
        }
    }
    let is_alone = |row: &usize| {
        samples.label(*row).and_then(|class| folds_of_class.get(&class)).is_some_and(|folds| folds.len() == 1)
    };
    folds.iter().flatten().copied().filter(is_alone).collect()
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;

    use super::*;
    use crate::sample_vectors::SampleVectors;

    /// Folds of samples with these labels and groups, at several seeds.
    fn dealt(labels: &[u32], groups: &[u32], count: usize) -> Vec<Folds> {
        let ids: Vec<u64> = (0..labels.len() as u64).map(|id| 10 * id).collect();
        let numbers = vec![1.0; labels.len()];
        let classes: Vec<String> =
            (0..=labels.iter().copied().max().unwrap_or(0)).map(|class| class.to_string()).collect();
        let some: Vec<Option<u32>> = labels.iter().copied().map(Some).collect();
        let samples = HeadSamples {
            ids: &ids,
            vectors: SampleVectors::Memory(Matrix::new(&numbers, labels.len(), 1).unwrap()),
            weak: 0,
            strong: 0,
            labels: &some,
            classes: &classes,
            groups,
            chosen: &[],
            weights: &[],
        };
        let rows = TrainingRows { labelled: (0..labels.len()).collect(), unlabelled: Vec::new() };
        (0..20).map(|seed| folds(&samples, &rows, count, Seed(seed))).collect()
    }

    fn fold_of(folds: &Folds, row: usize) -> usize {
        folds.rows.iter().position(|rows| rows.contains(&row)).unwrap()
    }

    #[test]
    fn groups_are_never_divided() {
        // Groups of three; the groups 4 and 9 have labels of two classes.
        let labels: Vec<u32> = (0..60).map(|row| row / 13 % 4).collect();
        let groups: Vec<u32> = (0..60).map(|row| row / 3).collect();
        for folds in dealt(&labels, &groups, 5) {
            assert_eq!(folds.rows.iter().map(Vec::len).sum::<usize>(), 60);
            for row in 0..60 {
                assert_eq!(fold_of(&folds, row), fold_of(&folds, row / 3 * 3));
            }
            assert!(folds.unseen.is_empty() && folds.rows.len() == 5);
        }
    }

    #[test]
    fn class_in_one_group_is_unseen() {
        let labels = [0, 0, 0, 0, 1, 1, 1, 2];
        let groups = [0, 1, 2, 3, 4, 4, 4, 5];
        for folds in dealt(&labels, &groups, 4) {
            assert_eq!(folds.unseen, BTreeSet::from([4, 5, 6, 7]));
        }
        // Two groups of a class may be in one fold because one of them was dealt with another class.
        for folds in dealt(&[0, 1, 0, 1, 0], &[0, 0, 1, 1, 2], 2) {
            let alone = |row: usize| {
                (0..5).all(|other| {
                    [0, 1, 0, 1, 0][other] != [0, 1, 0, 1, 0][row]
                        || fold_of(&folds, other) == fold_of(&folds, row)
                })
            };
            let unseen: BTreeSet<usize> = (0..5).filter(|&row| alone(row)).collect();
            assert_eq!(folds.unseen, unseen);
        }
    }

    #[test]
    fn one_group_per_class_has_no_folds() {
        assert!(dealt(&[0, 1, 2], &[], 3).iter().all(|folds| *folds == Folds::default()));
        assert!(dealt(&[0, 0, 1, 1], &[0, 0, 1, 1], 3).iter().all(|folds| *folds == Folds::default()));
        assert!(dealt(&[0, 1, 0, 1], &[7, 7, 7, 7], 3).iter().all(|folds| *folds == Folds::default()));
    }

    #[test]
    fn groups_of_one_change_no_fold() {
        let labels: Vec<u32> = (0..50).map(|row| row * row % 7).collect();
        let groups: Vec<u32> = (0..50).map(|row| 1_000 - row).collect();
        assert_eq!(dealt(&labels, &groups, 10), dealt(&labels, &[], 10));
    }
}
