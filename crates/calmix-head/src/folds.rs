//! Folds of the labelled samples.

use std::collections::BTreeMap;

use calmix_core::rng::{Domain, Seed};

use crate::samples::{HeadSamples, TrainingRows};

/// The labelled rows in folds, each ascending, and each class spread over as many as it has labels for. A class with one
/// label keeps it.
pub(crate) fn folds(
    samples: &HeadSamples<'_>,
    rows: &TrainingRows,
    wanted: usize,
    seed: Seed,
) -> Vec<Vec<usize>> {
    let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &row in &rows.labelled {
        if let Some(class) = samples.label(row) {
            classes.entry(class).or_default().push(row);
        }
    }
    let mut folds = vec![Vec::new(); wanted];
    let mut places = (0..wanted).cycle();
    for mut members in classes.into_values().filter(|members| members.len() > 1) {
        members.sort_by_cached_key(|&row| seed.stream(Domain::Fold, 0, samples.ids[row]).next_u64());
        for (row, place) in members.into_iter().zip(&mut places) {
            folds[place].push(row);
        }
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds.retain(|fold| !fold.is_empty());
    folds
}
