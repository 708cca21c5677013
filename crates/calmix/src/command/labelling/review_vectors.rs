//! The vectors of the pool that a page of `calmix review --live` learns from.

use anyhow::Result;
use calmix_heads::pool_vectors::PoolVectors;
use calmix_io::shown::shown;
use calmix_recipe::Recipe;
use calmix_report::review_page::LivePool;

use crate::error::CliError;
use crate::review::Pool;

/// `network.dimensions` of the vectors in a page.
pub(super) const LIVE_DIMENSIONS: u32 = 64;
/// The maximum number of vectors in a page: 5 MB.
pub(super) const MAX_LIVE_SAMPLES: usize = 20_000;
/// Rows of a page unless the user says how many: as many as are labelled in an hour.
pub(super) const LIVE_ROWS: u32 = 500;
/// Typical samples before the model chooses: as many as in a review of 50 rows.
pub(super) const FIRST_LABELS: usize = 35;

/// The vectors of a page, with what a fit to them needs.
pub(super) struct LiveVectors {
    vectors: PoolVectors,
    labels: Vec<(usize, u32, bool)>,
    folds: usize,
    seed: u64,
}

impl LiveVectors {
    pub(super) fn new(vectors: PoolVectors, pool: &Pool, recipe: &Recipe) -> Self {
        let mut labels = Vec::new();
        for (row, &id) in vectors.ids.iter().enumerate() {
            let sample = pool.index_of(id).and_then(|index| pool.samples.get(index));
            if let Some((label, drawn)) = sample.and_then(|sample| Some((sample.label?, sample.drawn))) {
                labels.push((row, label, !drawn.may_be_held_out()));
            }
        }
        Self { vectors, labels, folds: recipe.network.folds as usize, seed: recipe.train.seed }
    }

    /// Returns the row of a sample's vector.
    pub(super) fn row_of(&self, id: u64) -> Option<usize> {
        self.vectors.ids.binary_search(&id).ok()
    }

    pub(super) fn pool(&self) -> LivePool<'_> {
        LivePool {
            ids: &self.vectors.ids,
            width: self.vectors.dimensions,
            vectors: &self.vectors.vectors,
            labels: &self.labels,
            folds: self.folds,
            seed: [self.seed as u32, (self.seed >> 32) as u32],
        }
    }
}

/// Returns how many samples without a label a page has room for.
///
/// # Errors
/// If the labels alone are too many.
pub(super) fn room_for_unlabelled(pool: &Pool, data: &str) -> Result<usize> {
    let labelled = pool.samples.iter().filter(|sample| sample.label.is_some()).count();
    MAX_LIVE_SAMPLES.checked_sub(labelled).ok_or_else(|| {
        let message = format!(
            "{} has {labelled} labels, but a page learns from at most {MAX_LIVE_SAMPLES} samples",
            shown(data)
        );
        CliError::invalid(message).hint("leave out --live").into()
    })
}
