//! Folds of the labelled samples.

use std::collections::{BTreeMap, BTreeSet};

use calmix_core::rng::{Domain, Seed};

use crate::samples::{HeadSamples, TrainingRows};

/// The labelled rows in folds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Folds {
    /// The rows of each fold, ascending; none is empty.
    pub(crate) rows: Vec<Vec<usize>>,
    /// The rows whose class has no label outside their fold: the head of the fold cannot know that class.
    pub(crate) unseen: BTreeSet<usize>,
}

/// Deals the labelled rows into folds, each class spread over as many as it has labels for. There are no folds if every class
/// has a single label: no head of a fold could know the class of what it predicts.
pub(crate) fn folds(samples: &HeadSamples<'_>, rows: &TrainingRows, wanted: usize, seed: Seed) -> Folds {
    let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &row in &rows.labelled {
        if let Some(class) = samples.label(row) {
            classes.entry(class).or_default().push(row);
        }
    }
    let (single, several): (Vec<_>, Vec<_>) = classes.into_values().partition(|members| members.len() == 1);
    if several.is_empty() {
        return Folds::default();
    }
    let mut folds = vec![Vec::new(); wanted];
    let mut places = (0..wanted).cycle();
    let unseen = single.iter().flatten().copied().collect();
    // The single labels come last, so that they do not change where the others are.
    for mut members in several.into_iter().chain(single) {
        members.sort_by_cached_key(|&row| seed.stream(Domain::Fold, 0, samples.ids[row]).next_u64());
        for (row, place) in members.into_iter().zip(&mut places) {
            folds[place].push(row);
        }
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds.retain(|fold| !fold.is_empty());
    Folds { rows: folds, unseen }
}
