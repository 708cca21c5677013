//! The features of a frozen backbone, for a run that trains a head on them: read from the cache, after missing ones are computed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::features::{
    self, FeatureCache, FeatureIdentity, FeatureView, MissingPage, ViewPixels, by_page, from_f16, to_f16,
};
use calmix_data::loader::{EvalLoader, OnCorrupt, SampleStream, Warn};
use calmix_head::projection::Projection;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_lifecycle::evaluation::WorkCount;
use calmix_lifecycle::run_samples::NeededSamples;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::session::RunOn;
use calmix_recipe::Recipe;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_run::model_info::{HeadInfo, ModelInfo};
use calmix_run::run::{Paths, Run, RunFile};
use calmix_run::sink::Work;
use calmix_run::tensor_files::head_files::{max_projection_bytes, projection_bytes, read_projection};
use serde_json::json;

use super::backbone::Backbone;
use super::{FeaturePlace, FeatureWork, PagePart};
use crate::error::HeadsError;
use crate::head_memory::HeadMemory;
use crate::head_settings::runtime;
use crate::head_vectors::HeadVectors;
use crate::read_vectors::projection_of_run;
use crate::vector_table::{BLOCK_ROWS, TablePlace, TableWriter, VectorTable, fit_projection, fitted_stride};

/// The number of samples that are decoded at once.
const DECODE_BATCH: u32 = 16;

/// A frozen backbone and the cache of its features.
pub(crate) struct FrozenFeatures {
    backbone: Backbone,
    width: usize,
    run_on: RunOn,
    runtime: String,
    cache: FeatureCache,
    views: Vec<FeatureView>,
    /// The projection file of the run, which may not exist yet; `None` without a run.
    projection: Option<ConfinedPath>,
    /// The folder of the run, for vectors that do not fit into memory; `None` if nothing may be written there.
    scratch: Option<PathBuf>,
    /// Whether the features must be written to the cache, because no run follows that could use them from memory.
    must_cache: bool,
    /// Whether the cache can be written; `false` once a write has failed.
    is_writable: bool,
    warn: Warn,
}

impl FrozenFeatures {
    /// Opens the backbone and the cache of a recipe. A run that has begun has its own copy of the backbone. If the cache
    /// can be neither read nor created, a run continues without it: features are cached only to save time.
    pub(crate) fn open(
        recipe: &Recipe,
        place: FeaturePlace<'_>,
        dataset: &Dataset,
        warn: Warn,
    ) -> Result<Self, HeadsError> {
        let network = &recipe.network;
        let paths = place.paths();
        let backbone = match paths {
            Some(paths) => Backbone::of_run(recipe, paths)?,
            None => Backbone::read(recipe)?,
        };
        let run_on = RunOn {
            threads: recipe.train.threads.max(1) as usize,
            device: recipe.train.device.or_else(|| Device::Cpu),
        };
        let runtime = runtime(recipe)?;
        let width = backbone.width(run_on)?;
        // Runs share features only if everything that these depend on is the same.
        let identity = FeatureIdentity {
            format: features::FORMAT,
            dataset: dataset.fingerprint().to_owned(),
            views: json!(recipe.augment.resolve()).to_string(),
            backbone: backbone.identity(recipe).to_string(),
            runtime: runtime.clone(),
            width: width as u32,
        };
        let own = paths.filter(|_| network.cache.is_empty()).map(Paths::features);
        let folder = own.clone().unwrap_or_else(|| ConfinedPath::root(&network.cache));
        let mut frozen = Self {
            width,
            run_on,
            runtime,
            backbone,
            cache: FeatureCache::in_memory(&folder, &identity),
            views: FeatureView::list(network.weak_views as u8, network.strong_views as u8),
            projection: paths.map(|paths| paths.file(RunFile::Projection)).transpose()?,
            scratch: match place {
                FeaturePlace::Run(paths) => Some(paths.folder().to_owned()),
                FeaturePlace::Shared | FeaturePlace::Memory(_) => None,
            },
            must_cache: paths.is_none(),
            is_writable: !matches!(place, FeaturePlace::Memory(_)),
            warn,
        };
        if !frozen.is_writable {
            return Ok(frozen);
        }
        if let Some(own) = own {
            safe_open::create_folder_if_missing(&own)?;
        }
        let must_cache = frozen.must_cache;
        match FeatureCache::open(&folder, &identity) {
            // Do not fall back in this case: the storage will be available again, and may hold the features of hours of work.
            Err(error) if !must_cache && !error.is_transient() => frozen.disable_cache(&error),
            opened => frozen.cache = opened?,
        }
        if frozen.is_writable
            && let Err(error) = frozen.cache.carry_over(&folder, &identity, dataset)
        {
            (frozen.warn)(&format!("{error}; features of earlier states of the dataset are computed again"));
        }
        if let Some(foreign) = frozen.cache.foreign() {
            (frozen.warn)(&format!(
                "{}: these cached features belong to another user and are not trusted; this run computes its own in {}",
                shown(foreign.display()),
                shown(frozen.folder().display())
            ));
        }
        if let Some(other) = frozen.cache.of_other_runtime() {
            (frozen.warn)(&format!(
                "{}: these cached features were not computed by {}, so they are computed again, in {}",
                shown(other.display()),
                frozen.runtime,
                shown(frozen.folder().display())
            ));
        }
        Ok(frozen)
    }

    /// Stops writing to the cache, and warns once.
    fn disable_cache(&mut self, error: &DataError) {
        if std::mem::replace(&mut self.is_writable, false) {
            (self.warn)(&format!(
                "{error}; new features stay in memory, and the next run computes them again; set network.cache to use \
                 another folder"
            ));
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.cache.folder()
    }

    /// Estimates the memory that a run on these samples needs.
    pub(crate) fn memory(&self, recipe: &Recipe, needed: &NeededSamples, classes: usize) -> HeadMemory {
        let width = self.width;
        let memory = HeadMemory::of(recipe, needed, width, classes);
        if self.is_writable { memory } else { memory.with_features(self.views.len(), width) }
    }

    /// Computes this process's part of the features of these samples that the cache lacks.
    ///
    /// # Errors
    /// [`HeadsError::Stopped`] if the run has to stop; the cache keeps what was computed.
    pub(crate) fn make(
        &mut self,
        needed: &NeededSamples,
        part: PagePart,
        work: &FeatureWork<'_>,
    ) -> Result<(), HeadsError> {
        let mut needs = self.cache.missing(needed.training.iter().copied(), &self.views);
        needs.extend(self.cache.missing(needed.evaluation.iter().copied(), &[FeatureView::Clean]));
        needs.retain(|need| need.number() % part.of.max(1) as u64 == part.index as u64);
        if needs.is_empty() {
            return Ok(());
        }
        // Load the network only now: with all features cached, it is not needed.
        let backbone = self.backbone.network(self.run_on)?;
        let total = needs.iter().map(|need| (need.ids.len() * need.views.len()) as u64).sum();
        let mut count = WorkCount::begin(&*work.on_progress, Work::Features, total);
        // One loader reads consecutive pages of the same views, so that batches of the backbone may cross the ends of pages.
        // Samples that are only evaluated have their own pages, even if they lack the same view.
        let mut runs = needs.chunk_by(|page, next| page.views == next.views && page.number() < next.number());
        runs.try_for_each(|pages| self.make_pages(&backbone, pages, work, &mut count))
    }

    /// Adds a page to the cache; keeps it in memory if the cache cannot be written.
    fn store(&mut self, page: &MissingPage, vectors: Vec<u8>) -> Result<(), HeadsError> {
        if self.is_writable {
            match self.cache.write(page, &vectors) {
                Err(error) if !self.must_cache => self.disable_cache(&error),
                written => return Ok(written?),
            }
        }
        Ok(self.cache.hold(page, vectors)?)
    }

    /// Computes pages of the same views. A page is stored when the first sample of the next one arrives.
    fn make_pages(
        &mut self,
        backbone: &ImageNetwork,
        pages: &[MissingPage],
        work: &FeatureWork<'_>,
        count: &mut WorkCount<'_>,
    ) -> Result<(), HeadsError> {
        let Some(MissingPage { views, .. }) = pages.first() else { return Ok(()) };
        let ids: Vec<u64> = pages.iter().flat_map(|page| &page.ids).copied().collect();
        let pixels = ViewPixels {
            source: Arc::clone(&work.images.images),
            augment: Arc::clone(&work.images.augment),
            views: views.clone(),
        };
        let stream = SampleStream { ids: ids.as_slice().into(), batch: DECODE_BATCH };
        let corrupt = OnCorrupt::Skip { share: 1.0 };
        let batches = EvalLoader::new(Arc::new(pixels), stream, corrupt, work.images.workers)?;
        let mut batches = batches.warning(Arc::clone(&work.warn));
        let bytes = 2 * backbone.feature_width() * views.len();
        let mut page = MissingPage { ids: Vec::new(), views: views.clone() };
        let mut vectors = Vec::new();
        while let Some(batch) = batches.next_unless(&mut || work.stop.load(Ordering::Relaxed)) {
            let batch = match batch {
                Err(DataError::Interrupted) => return Err(HeadsError::Stopped),
                batch => batch?,
            };
            let mut narrow = Vec::with_capacity(batch.ids.len() * bytes);
            for pixels in batch.pixels.chunks(backbone.pass_bytes()) {
                // Check the stop flag here: a batch of many views takes a minute, and a loader that is ahead of the backbone does
                // not check it.
                if work.stop.load(Ordering::Relaxed) {
                    return Err(HeadsError::Stopped);
                }
                narrow.extend(to_f16(&backbone.outputs(pixels)?.features));
            }
            // Corrupt samples are left out; the next run tries them again.
            for (&id, sample) in batch.ids.iter().zip(narrow.chunks_exact(bytes)) {
                if !page.holds(id) {
                    self.store(&page, std::mem::take(&mut vectors))?;
                    page.ids.clear();
                }
                page.ids.push(id);
                vectors.extend_from_slice(sample);
            }
            count.add((batch.ids.len() * views.len()) as u64);
        }
        self.store(&page, vectors)
    }

    /// Reads the projected features that the run is trained and evaluated on, with the run's own projection if it has one.
    /// Damaged pages are computed again first.
    pub(crate) fn load(
        &mut self,
        recipe: &Recipe,
        needed: &NeededSamples,
        work: &FeatureWork<'_>,
    ) -> Result<HeadVectors, HeadsError> {
        let damaged = self.cache.damaged();
        if let Some(vectors) = self.load_cached(recipe, needed, work.stop)? {
            return Ok(vectors);
        }
        (work.warn)(&format!(
            "{}: {} pages of cached features are damaged and are computed again",
            self.folder().display(),
            self.cache.damaged() - damaged
        ));
        self.make(needed, PagePart::ALL, work)?;
        loop {
            // The loop ends: each iteration without a result marks a damaged page as absent.
            if let Some(vectors) = self.load_cached(recipe, needed, work.stop)? {
                return Ok(vectors);
            }
        }
    }

    /// Projects the cached features of the samples; `None` if some pages are damaged, which then count as absent.
    fn load_cached(
        &mut self,
        recipe: &Recipe,
        needed: &NeededSamples,
        stop: &AtomicBool,
    ) -> Result<Option<HeadVectors>, HeadsError> {
        let views = self.views.clone();
        let training = self.cache.held(&needed.training, &views);
        let evaluation = self.cache.held(&needed.evaluation, &[FeatureView::Clean]);
        let Some(projection) = self.projection(recipe, &self.cache.held(&needed.fitted(), &views), stop)?
        else {
            return Ok(None);
        };
        let info = HeadInfo {
            sets: Vec::new(),
            kind: recipe.network.head,
            precision: Precision::F32,
            runtime: self.runtime.clone(),
            features: projection.width() as u32,
            dimensions: projection.dimensions() as u32,
            neighbours: 0,
            backbone: self.backbone.hash().to_owned(),
            encoder: self.backbone.encoder_spec().cloned(),
            projection: ModelInfo::hash(&projection_bytes(&projection)?),
        };
        let training = self.table(training, &views, &projection, stop)?;
        let evaluation = self.table(evaluation, &[FeatureView::Clean], &projection, stop)?;
        let tables = training.zip(evaluation);
        Ok(tables.map(|(training, evaluation)| HeadVectors { projection, info, training, evaluation }))
    }

    /// Projects features page by page, so that only one page is in memory; `None` if a page is damaged.
    fn table(
        &mut self,
        ids: Vec<u64>,
        views: &[FeatureView],
        projection: &Projection,
        stop: &AtomicBool,
    ) -> Result<Option<VectorTable>, HeadsError> {
        let place = self.scratch.as_deref().map_or(TablePlace::MEMORY, TablePlace::new);
        let mut table = TableWriter::new(ids.len(), views.len() * projection.dimensions(), place)?;
        let block = (BLOCK_ROWS * 2 * projection.width()).max(1);
        let mut features = Vec::new();
        for page in by_page(&ids) {
            HeadsError::check_stop(stop)?;
            let (found, vectors) = self.cache.read(page, views)?;
            if found.len() < page.len() {
                return Ok(None);
            }
            features.extend(vectors);
            let complete = features.len() / block * block;
            for block in features[..complete].chunks(block) {
                table.project(projection, &from_f16(block))?;
            }
            features.drain(..complete);
        }
        table.project(projection, &from_f16(&features))?;
        Ok(Some(table.finish(ids)?))
    }

    /// Reads the clean features of samples before the projection. Samples that are not in the cache are left out.
    pub(crate) fn clean_features(
        &mut self,
        ids: &[u64],
        stop: &AtomicBool,
    ) -> Result<(Vec<u64>, Vec<f32>), HeadsError> {
        let mut found = Vec::with_capacity(ids.len());
        let mut features = Vec::new();
        for page in by_page(ids) {
            HeadsError::check_stop(stop)?;
            let (ids, vectors) = self.cache.read(page, &[FeatureView::Clean])?;
            found.extend(ids);
            features.extend(from_f16(&vectors));
        }
        Ok((found, features))
    }

    /// Reads the projection of the run, or fits one to the clean views of the training samples; `None` if one of their pages is
    /// damaged.
    fn projection(
        &mut self,
        recipe: &Recipe,
        ids: &[u64],
        stop: &AtomicBool,
    ) -> Result<Option<Projection>, HeadsError> {
        let width = self.width;
        let dimensions = recipe.network.dimensions as usize;
        // Without training samples none can be fitted, so the run must have one.
        if let Some(own) = self.projection.as_ref().filter(|own| ids.is_empty() || safe_open::exists(own)) {
            return projection_of_run(own, width, dimensions).map(Some);
        }
        // Fitting takes seconds, so runs with the same samples share the result.
        let samples: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let name = format!("{}-{dimensions}.projection", ModelInfo::hash(&samples));
        let kept = self.cache.kept(&name, max_projection_bytes(width));
        if let Some(kept) = kept.and_then(|file| read_projection(&file, width, dimensions).ok()) {
            return Ok(Some(kept));
        }
        let fitted_on: Vec<u64> = ids.iter().copied().step_by(fitted_stride(ids.len())).collect();
        let mut clean = Vec::with_capacity(fitted_on.len() * width);
        for page in by_page(&fitted_on) {
            HeadsError::check_stop(stop)?;
            let (found, vectors) = self.cache.read(page, &[FeatureView::Clean])?;
            if found.len() < page.len() {
                return Ok(None);
            }
            clean.extend(from_f16(&vectors));
        }
        let projection = fit_projection(&clean, width, &[], dimensions, stop)?;
        if self.is_writable
            && let Err(error) = self.cache.store_checked(&name, &projection_bytes(&projection)?)
        {
            self.disable_cache(&error);
        }
        Ok(Some(projection))
    }

    /// Writes the backbone and the projection into the run. Runs share the cache's copy of the backbone by hard links if
    /// possible.
    pub(crate) fn copy_to_run(&mut self, run: &Run, projection: &Projection) -> Result<(), HeadsError> {
        let file = self.backbone.run_file();
        let bytes = self.backbone.bytes();
        let name = run.paths().file(file)?;
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self.is_writable.then(|| self.cache.keep(&name, bytes)) {
            Some(Ok(shared)) => run.share(file, &shared, bytes)?,
            None => run.write(file, bytes)?,
            Some(Err(error)) => {
                run.write(file, bytes)?;
                self.disable_cache(&error);
            }
        }
        run.write(RunFile::Projection, &projection_bytes(projection)?)?;
        Ok(())
    }
}
