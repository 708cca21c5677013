//! The projected vectors of samples for a command that trains nothing, such as `calmix review`: the user's own, or features of
//! images from the cache that runs share.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_data::dataset::Dataset;
use calmix_data::loader::Warn;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_lifecycle::request::threads;
use calmix_lifecycle::run_images::RunImages;
use calmix_lifecycle::run_samples::NeededSamples;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::model_info::MAX_METADATA_BYTES;
use calmix_run::read;
use calmix_run::run::{Paths, RunFile};
use calmix_run::sink::WorkProgress;
use calmix_run::tensor_files::head_files::{max_head_bytes, read_head};

use crate::error::HeadsError;
use crate::head_settings::decide_head;
use crate::head_vectors::HeadVectors;
use crate::images::frozen_features::FrozenFeatures;
use crate::images::{FeaturePlace, FeatureWork, PagePart};
use crate::read_vectors::{project_vectors, read_vectors};
use crate::vector_table::{BLOCK_ROWS, TablePlace};

/// The clean vectors of samples after a projection that was fitted to them.
#[derive(Debug)]
pub struct PoolVectors {
    /// The samples, ascending. An image that cannot be read is left out.
    pub ids: Vec<u64>,
    pub dimensions: usize,
    /// One row per sample.
    pub vectors: Vec<f32>,
}

impl PoolVectors {
    /// # Errors
    /// Never for vectors of [`pool_vectors`].
    pub fn matrix(&self) -> Result<Matrix<'_>, HeadsError> {
        Ok(Matrix::new(&self.vectors, self.ids.len(), self.dimensions)?)
    }
}

/// What a computation of features reports, and what ends it.
pub struct PoolWork<'a> {
    pub stop: &'a AtomicBool,
    pub warn: Warn,
    pub on_progress: &'a mut dyn FnMut(&WorkProgress),
}

/// Reads or computes the vectors of these samples, which are ascending, as a run with this recipe would before it has labels.
///
/// # Errors
/// If the vectors or the backbone cannot be used; [`HeadsError::Stopped`] if `stop` becomes true: the cache keeps what was
/// computed.
pub fn pool_vectors(
    recipe: &Resolved,
    dataset: &Arc<Dataset>,
    ids: &[u64],
    work: PoolWork<'_>,
) -> Result<PoolVectors, HeadsError> {
    let mut recipe = recipe.clone();
    let threads = threads(recipe.recipe.train.threads, 1);
    decide_head(&mut recipe, threads)?;
    vectors_of_recipe(&recipe.recipe, dataset, ids, work)
}

/// As [`pool_vectors`], for the recipe of a run. The projection is not the one of the run: its `network.dimensions` may be others.
///
/// # Errors
/// As [`pool_vectors`].
pub fn vectors_of_recipe(
    recipe: &Recipe,
    dataset: &Arc<Dataset>,
    ids: &[u64],
    work: PoolWork<'_>,
) -> Result<PoolVectors, HeadsError> {
    let stop = work.stop;
    if recipe.has_vectors() {
        let (projection, vectors) = project_vectors(dataset, ids, recipe.network.dimensions as usize, stop)?;
        return Ok(PoolVectors { ids: ids.to_vec(), dimensions: projection.dimensions(), vectors });
    }
    let needed = NeededSamples { training: ids.to_vec(), ..NeededSamples::default() };
    let vectors = features(recipe, FeaturePlace::Shared, dataset, &needed, work)?;
    let dimensions = vectors.projection.dimensions();
    let mut numbers = Vec::with_capacity(vectors.training.ids.len() * dimensions);
    for &id in &vectors.training.ids {
        vectors.training.read_first(id, dimensions, &mut numbers)?;
    }
    Ok(PoolVectors { ids: vectors.training.ids, dimensions, vectors: numbers })
}

/// Computes the logits of a finished run's head for these samples, which are ascending; returns the samples that could be read.
///
/// # Errors
/// As [`pool_vectors`], and if the model of the run cannot be read.
pub fn pool_logits(
    run: &Path,
    recipe: &Recipe,
    dataset: &Arc<Dataset>,
    ids: &[u64],
    work: PoolWork<'_>,
) -> Result<(Vec<u64>, Vec<f32>), HeadsError> {
    let paths = Paths::new(run);
    let stop = work.stop;
    let needed = NeededSamples { evaluation: ids.to_vec(), ..NeededSamples::default() };
    let vectors = if recipe.has_vectors() {
        read_vectors(recipe, dataset, &needed, &paths, TablePlace::MEMORY, stop)?
    } else {
        features(recipe, FeaturePlace::Run(&paths), dataset, &needed, work)?
    };
    let mut info = vectors.info.clone();
    info.neighbours = read::model_info(run)?.head.map_or(0, |head| head.neighbours);
    let shape = info.shape(dataset.classes().len());
    let path = paths.file(RunFile::Model)?;
    let model = safe_open::read(&path, max_head_bytes(shape) + MAX_METADATA_BYTES)?;
    let head = read_head(&model, shape).map_err(|problem| FileError::new(path, problem))?;
    let dimensions = vectors.projection.dimensions();
    let mut logits = Vec::new();
    for block in vectors.evaluation.ids.chunks(BLOCK_ROWS) {
        HeadsError::check_stop(stop)?;
        let mut numbers = Vec::with_capacity(block.len() * dimensions);
        for &id in block {
            vectors.evaluation.read_first(id, dimensions, &mut numbers)?;
        }
        logits.extend(head.forward(&numbers)?.logits);
    }
    Ok((vectors.evaluation.ids, logits))
}

/// Loads the features of images, after computing those that the cache lacks.
fn features(
    recipe: &Recipe,
    place: FeaturePlace<'_>,
    dataset: &Arc<Dataset>,
    needed: &NeededSamples,
    work: PoolWork<'_>,
) -> Result<HeadVectors, HeadsError> {
    let PoolWork { stop, warn, on_progress } = work;
    let images = RunImages::new(recipe, dataset, 1);
    let shown = RefCell::new(on_progress);
    let work = FeatureWork {
        images: &images,
        stop,
        warn: Arc::clone(&warn),
        on_progress: Box::new(|progress| (shown.borrow_mut())(progress)),
    };
    let mut frozen = FrozenFeatures::open(recipe, place, dataset, warn)?;
    frozen.make(needed, PagePart::ALL, &work)?;
    frozen.load(recipe, needed, &work)
}
