//! Checks before any vector is read that a run of heads fits into memory: an estimate, compared with what the machine has
//! available.

use calmix_core::samples::Samples;
use calmix_head::gaussian_mixture::MOST_PROBABILITIES;
use calmix_io::available_memory::available_memory;
use calmix_recipe::Recipe;

use crate::error::VectorsError;
use crate::run_samples::NeededSamples;
use crate::vector_projection::FITTED;
use crate::vector_table::TablePlace;

/// Bytes of a training sample whatever the method is: its id among those needed, those found and those of a table, its
/// label, its row.
const SAMPLE: u64 = 5 * 8;
/// How often the vectors that a projection is fitted on are in memory: themselves, centred, and in the products.
const FITTED_COPIES: u64 = 3;
/// How often the vectors that are only evaluated are in memory: in their table, and those of a split.
const EVALUATED_COPIES: u64 = 2;

/// What a run of heads keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadMemory {
    /// Samples that are trained on.
    samples: u64,
    /// Bytes of vectors.
    vectors: u64,
    /// Bytes of what is kept for each sample: of all heads, and of those that are trained at a time.
    state: u64,
}

impl HeadMemory {
    /// The need of a recipe whose vectors have `width` numbers before they are projected.
    pub fn of(recipe: &Recipe, needed: &NeededSamples, width: usize, classes: usize) -> Self {
        let network = &recipe.network;
        let views = 1 + u64::from(network.weak_views) + u64::from(network.strong_views);
        let dimensions = match u64::from(network.dimensions) {
            0 => width as u64,
            dimensions => dimensions.min(width as u64),
        };
        let samples = needed.training.len() as u64;
        let vector = 4 * dimensions;
        let table = samples.saturating_mul(views * vector).min(TablePlace::IN_MEMORY);
        let evaluated = (needed.evaluation.len() as u64).saturating_mul(vector * EVALUATED_COPIES);
        let fitted = samples.min(FITTED as u64) * 4 * width as u64 * FITTED_COPIES;
        // The head of the recipe, or both mixtures; each has its rows for every fold.
        let methods = if recipe.has_one_vector() { 2 } else { 1 };
        let heads = methods * (1 + u64::from(network.folds));
        let at_a_time = heads.min(u64::from(recipe.train.threads.max(1)));
        let in_training = if recipe.has_one_vector() {
            MOST_PROBABILITIES.min(samples.saturating_mul(classes as u64)).saturating_mul(4)
        } else {
            Samples::bytes(&recipe.method, classes, needed.training.len())
        };
        let state = (SAMPLE + 8 * heads + 16 * at_a_time)
            .saturating_mul(samples)
            .saturating_add(in_training.saturating_mul(at_a_time));
        Self { samples, vectors: table.saturating_add(evaluated).saturating_add(fitted), state }
    }

    /// The same with features that are kept in memory because there is no cache: of all views, in f16.
    #[must_use]
    pub fn with_features(mut self, views: usize, width: usize) -> Self {
        let features = self.samples.saturating_mul(2 * (views * width) as u64);
        self.vectors = self.vectors.saturating_add(features);
        self
    }

    /// Refuses a run that does not fit into this machine.
    ///
    /// # Errors
    /// [`VectorsError::Memory`], with what is needed and what is available.
    pub fn check(self) -> Result<(), VectorsError> {
        available_memory().map_or(Ok(()), |available| self.check_in(available))
    }

    fn check_in(self, available: u64) -> Result<(), VectorsError> {
        let Self { samples, vectors, state } = self;
        if vectors.saturating_add(state) <= available {
            return Ok(());
        }
        Err(VectorsError::Memory { samples, vectors, state, available })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_of_heads_too_large_for_memory_is_refused() {
        let need = HeadMemory { samples: 2_000_000, vectors: 600 << 20, state: 500 << 20 };
        assert!(need.check_in(1_100 << 20).is_ok());
        let error = need.check_in(1_000 << 20).unwrap_err().to_string();
        for part in ["2000000 samples", "1100 MB", "600 MB", "1000 MB", "labels.unlabelled_count"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(need.with_features(5, 1_280).check_in(20 << 30).is_err());
        assert!(HeadMemory { state: u64::MAX, ..need }.check_in(u64::MAX - 1).is_err());
    }
}
