//! Reads the vectors that a head is trained and evaluated on from a dataset of vectors.

use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_head::projection::Projection;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_lifecycle::run_samples::NeededSamples;
use calmix_lifecycle::run_samples::VectorShape;
use calmix_recipe::Recipe;
use calmix_recipe::precision::Precision;
use calmix_run::model_info::{HeadInfo, ModelInfo};
use calmix_run::run::{Paths, RunFile};
use calmix_run::tensor_files::head_files::{max_projection_bytes, projection_bytes, read_projection};

use crate::error::HeadsError;
use crate::head_memory::HeadMemory;
use crate::head_vectors::HeadVectors;
use crate::vector_table::{BLOCK_ROWS, TablePlace, TableWriter, VectorTable, fit_projection, fitted_stride};

/// Reads the needed samples, and projects them into tables at `place`. The projection is the run's own, or is fitted to the
/// training samples.
///
/// # Errors
/// If the file of the vectors has changed since it was prepared, or there are fewer views than the recipe uses;
/// [`HeadsError::Stopped`] if `stop` becomes true.
pub fn read_vectors(
    recipe: &Recipe,
    dataset: &Dataset,
    needed: &NeededSamples,
    paths: &Paths,
    place: TablePlace<'_>,
    stop: &AtomicBool,
) -> Result<HeadVectors, HeadsError> {
    let shape = VectorShape::of(dataset)?;
    let network = &recipe.network;
    let views = 1 + network.weak_views as usize + network.strong_views as usize;
    if views > shape.views {
        return Err(HeadsError::unsupported(format!(
            "each sample has {} vectors, fewer than the first one and network.weak_views = {} and network.strong_views = {}; \
             lower these keys",
            shape.views, network.weak_views, network.strong_views
        )));
    }
    HeadMemory::of(recipe, needed, shape.width, dataset.classes().len()).check()?;
    let reader = VectorReader { dataset, shape, place, stop };
    let projection = reader.projection(recipe, &needed.fitted(), paths)?;
    let info = vector_head_info(recipe, &projection)?;
    let training = reader.table(&needed.training, views, &projection)?;
    let evaluation = reader.table(&needed.evaluation, 1, &projection)?;
    Ok(HeadVectors { projection, info, training, evaluation })
}

/// Reads the first vectors of these samples and projects them by a projection that is fitted to them.
///
/// # Errors
/// As [`read_vectors`].
pub(crate) fn project_vectors(
    dataset: &Dataset,
    ids: &[u64],
    dimensions: usize,
    stop: &AtomicBool,
) -> Result<(Projection, Vec<f32>), HeadsError> {
    let shape = VectorShape::of(dataset)?;
    let reader = VectorReader { dataset, shape, place: TablePlace::MEMORY, stop };
    let projection = reader.fitted(ids, dimensions)?;
    let table = reader.table(ids, 1, &projection)?;
    let mut numbers = Vec::with_capacity(ids.len() * projection.dimensions());
    for &id in ids {
        table.read_first(id, projection.dimensions(), &mut numbers)?;
    }
    Ok((projection, numbers))
}

/// Describes a head on the user's own vectors, which have no backbone.
pub(crate) fn vector_head_info(recipe: &Recipe, projection: &Projection) -> Result<HeadInfo, HeadsError> {
    Ok(HeadInfo {
        kind: recipe.network.head,
        precision: Precision::F32,
        features: projection.width() as u32,
        sets: sets_of(projection),
        dimensions: projection.dimensions() as u32,
        neighbours: 0,
        backbone: String::new(),
        encoder: None,
        runtime: String::new(),
        projection: ModelInfo::hash(&projection_bytes(projection)?),
    })
}

/// Returns the widths of the sets of features, if there are several.
fn sets_of(projection: &Projection) -> Vec<u32> {
    let [_, _, ..] = projection.sets() else { return Vec::new() };
    projection.sets().iter().map(|&set| set as u32).collect()
}

/// Reads the projection of a run.
pub(crate) fn projection_of_run(
    path: &ConfinedPath,
    width: usize,
    dimensions: usize,
) -> Result<Projection, HeadsError> {
    let file = safe_open::read(path, max_projection_bytes(width))?;
    let projection = read_projection(&file, width, dimensions);
    Ok(projection.map_err(|problem| FileError::new(path, problem))?)
}

struct VectorReader<'a> {
    dataset: &'a Dataset,
    shape: VectorShape,
    place: TablePlace<'a>,
    stop: &'a AtomicBool,
}

impl VectorReader<'_> {
    fn add(&self, id: u64, views: usize, numbers: &mut Vec<f32>) -> Result<(), HeadsError> {
        let start = numbers.len();
        self.dataset.vector(id, numbers)?;
        numbers.truncate(start + views * self.shape.width);
        Ok(())
    }

    /// Projects the first `views` vectors of samples, block by block.
    fn table(&self, ids: &[u64], views: usize, projection: &Projection) -> Result<VectorTable, HeadsError> {
        let mut table = TableWriter::new(ids.len(), views * projection.dimensions(), self.place)?;
        let mut numbers = Vec::new();
        for block in ids.chunks((BLOCK_ROWS / views).max(1)) {
            HeadsError::check_stop(self.stop)?;
            numbers.clear();
            for &id in block {
                self.add(id, views, &mut numbers)?;
            }
            table.project(projection, &numbers)?;
        }
        table.finish(ids.to_vec())
    }

    /// Reads the run's own projection, or fits one to the clean vectors of the training samples.
    fn projection(&self, recipe: &Recipe, ids: &[u64], paths: &Paths) -> Result<Projection, HeadsError> {
        let width = self.shape.width;
        let dimensions = recipe.network.dimensions as usize;
        let own = paths.file(RunFile::Projection)?;
        // Without training samples none can be fitted, so the run must have one.
        if ids.is_empty() || safe_open::exists(&own) {
            return projection_of_run(&own, width, dimensions);
        }
        self.fitted(ids, dimensions)
    }

    /// Fits a projection to the clean vectors of samples.
    fn fitted(&self, ids: &[u64], dimensions: usize) -> Result<Projection, HeadsError> {
        let mut clean = Vec::new();
        for (n, &id) in ids.iter().step_by(fitted_stride(ids.len())).enumerate() {
            if n.is_multiple_of(BLOCK_ROWS) {
                HeadsError::check_stop(self.stop)?;
            }
            self.add(id, 1, &mut clean)?;
        }
        let sets = self.dataset.feature_sets();
        fit_projection(&clean, self.shape.width, &sets, dimensions, self.stop)
    }
}
