//! An estimate of the memory that a run of heads needs, compared with the available memory before any vector is read.

use calmix_core::samples::Samples;
use calmix_head::gaussian_mixture::MAX_PROBABILITIES;
use calmix_head::logistic_regression::STRENGTHS;
use calmix_head::neighbours;
use calmix_io::process::memory::available_memory;
use calmix_lifecycle::run_samples::NeededSamples;
use calmix_metrics::calibrator::CalibratorKind;
use calmix_recipe::Recipe;

use crate::error::HeadsError;
use crate::vector_table::MAX_FITTED_SAMPLES;
use crate::vector_table::TablePlace;

/// Bytes per training sample with any method: its id in three lists (needed samples, samples found, table), its label, its row.
const SAMPLE_BYTES: u64 = 5 * 8;
/// Copies in memory of the vectors that a projection is fitted on: the vectors, the centred ones, and those in products.
const FITTED_COPIES: u64 = 3;
/// Bytes per weight while logistic regression is fitted: twelve pairs of L-BFGS vectors and six more, in f64.
const FITTED_WEIGHT_BYTES: u64 = 8 * (2 * 12 + 6);
/// The heads per fold: one for each C of logistic regression, and two mixtures.
const HEADS_PER_FOLD: u64 = STRENGTHS.len() as u64 + 2;
/// Bytes per sample of a graph of neighbours and of the outputs of the hidden layer above it. The probabilities of its heads take no
/// more than those of a mixture.
const NEIGHBOUR_BYTES: u64 = 4 * 512 + 48 * 20;
/// Copies of each number of a head: weights and EMA; or logits by row and as predictions.
const HEAD_COPIES: u64 = 2;
/// Copies in memory of the vectors that are only evaluated: in their table and in the split that is read from it.
const EVALUATED_COPIES: u64 = 2;

/// The memory that a run of heads needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadMemory {
    samples: u64,
    /// Bytes of vectors.
    vectors: u64,
    /// Bytes of the state per sample, of all heads and of those that are trained concurrently.
    state: u64,
    heads: WeightMemory,
}

/// The memory of the weights and logits of heads on one vector per sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct WeightMemory {
    labels: u64,
    classes: u64,
    /// Bytes of weights and of logits of held-out labels.
    bytes: u64,
}

impl WeightMemory {
    fn of(recipe: &Recipe, needed: &NeededSamples, dimensions: u64, classes: u64) -> Self {
        let labels = needed.labelled as u64;
        if !recipe.has_one_vector() || labels == 0 {
            return Self { labels, classes, bytes: 0 };
        }
        let has_folds = needed.validation < CalibratorKind::Temperature.min_labels();
        let trainings = 1 + if has_folds { u64::from(recipe.network.folds) } else { 0 };
        let concurrent = trainings.min(u64::from(recipe.train.threads.max(1)));
        let weights = (dimensions + 1).saturating_mul(classes);
        let kept = 4 * HEAD_COPIES * HEADS_PER_FOLD;
        let per_weight = FITTED_WEIGHT_BYTES * concurrent + kept * trainings;
        let predicted = if has_folds { labels } else { needed.validation as u64 };
        let logits = predicted.saturating_mul(classes).saturating_mul(kept);
        Self { labels, classes, bytes: weights.saturating_mul(per_weight).saturating_add(logits) }
    }
}

impl HeadMemory {
    /// Estimates the memory of a recipe whose vectors have `width` numbers before they are projected.
    pub fn of(recipe: &Recipe, needed: &NeededSamples, width: usize, classes: usize) -> Self {
        let network = &recipe.network;
        let views = 1 + u64::from(network.weak_views) + u64::from(network.strong_views);
        let dimensions = match u64::from(network.dimensions) {
            0 => width as u64,
            dimensions => dimensions.min(width as u64),
        };
        let samples = needed.training.len() as u64;
        let vector = 4 * dimensions;
        let table = samples.saturating_mul(views * vector).min(TablePlace::MAX_BYTES_IN_MEMORY);
        let evaluated = (needed.evaluation.len() as u64).saturating_mul(vector * EVALUATED_COPIES);
        let fitted = samples.min(MAX_FITTED_SAMPLES as u64) * 4 * width as u64 * FITTED_COPIES;
        // The configured head, or the two mixtures; each has a list of rows for every fold.
        let methods = if recipe.has_one_vector() { 2 } else { 1 };
        let heads = methods * (1 + u64::from(network.folds));
        let concurrent = heads.min(u64::from(recipe.train.threads.max(1)));
        let in_training = if recipe.has_one_vector() {
            MAX_PROBABILITIES.min(samples.saturating_mul(classes as u64)).saturating_mul(4)
        } else {
            Samples::bytes(&recipe.method, classes, needed.training.len())
        };
        let has_neighbours = network.neighbours && neighbours::fits(needed.training.len(), classes);
        let neighbours = if has_neighbours { samples * NEIGHBOUR_BYTES } else { 0 };
        let state = (SAMPLE_BYTES + 8 * heads + 16 * concurrent)
            .saturating_mul(samples)
            .saturating_add(in_training.saturating_mul(concurrent))
            .saturating_add(neighbours);
        let heads = WeightMemory::of(recipe, needed, dimensions, classes as u64);
        Self { samples, vectors: table.saturating_add(evaluated).saturating_add(fitted), state, heads }
    }

    /// Adds features that are kept in memory because there is no cache: those of all views, in f16.
    #[must_use]
    pub fn with_features(mut self, views: usize, width: usize) -> Self {
        let features = self.samples.saturating_mul(2 * (views * width) as u64);
        self.vectors = self.vectors.saturating_add(features);
        self
    }

    /// Refuses a run that does not fit into the memory of this machine.
    ///
    /// # Errors
    /// [`HeadsError::Memory`], with the needed and the available memory.
    pub fn check(self) -> Result<(), HeadsError> {
        available_memory().map_or(Ok(()), |available| self.check_in(available))
    }

    fn check_in(self, available: u64) -> Result<(), HeadsError> {
        let Self { samples, vectors, state, heads } = self;
        let WeightMemory { labels, classes, bytes } = heads;
        if bytes > available {
            return Err(HeadsError::TooManyClasses { labels, classes, bytes, available });
        }
        let state = state.saturating_add(bytes);
        if vectors.saturating_add(state) <= available {
            return Ok(());
        }
        Err(HeadsError::Memory { samples, vectors, state, available })
    }
}

#[cfg(test)]
mod tests {
    use calmix_recipe::Layers;

    use super::*;
    use crate::vector_classifier::recipe;

    #[test]
    fn run_of_heads_too_large_for_memory_is_refused() {
        let heads = WeightMemory::default();
        let need = HeadMemory { samples: 2_000_000, vectors: 600 << 20, state: 500 << 20, heads };
        assert!(need.check_in(1_100 << 20).is_ok());
        let error = need.check_in(1_000 << 20).unwrap_err().to_string();
        for part in ["2000000 samples", "1100 MB", "600 MB", "1000 MB", "labels.unlabelled_count"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(need.with_features(5, 1_280).check_in(20 << 30).is_err());
        assert!(HeadMemory { state: u64::MAX, ..need }.check_in(u64::MAX - 1).is_err());
    }

    #[test]
    fn classes_that_do_not_fit_into_memory_are_refused() {
        let mut recipe = recipe(Layers::new().recipe("vectors"), 1).unwrap();
        recipe.train.threads = 2;
        let training: Vec<u64> = (0..20_000).collect();
        let needed = NeededSamples { training, labelled: 20_000, ..NeededSamples::default() };
        // As documented: a hundred classes take little more than their vectors.
        assert!(HeadMemory::of(&recipe, &needed, 768, 100).check_in(2 << 30).is_ok());
        let error = HeadMemory::of(&recipe, &needed, 768, 10_000).check_in(2 << 30).unwrap_err().to_string();
        for part in ["10000 classes", "20000 labels", "2048 MB", "not ids"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        // Held-out labels are predicted instead of those of folds.
        let held_out = NeededSamples { validation: 50, ..needed };
        assert!(HeadMemory::of(&recipe, &held_out, 768, 1_000).check_in(2 << 30).is_ok());
    }
}
