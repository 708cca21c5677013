//! The images of a run: loading them, and thumbnails for the report and the search for near-duplicates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_data::augment::{Augment, EvalView};
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::{
    EvalLoader, ImageSource, ImageViews, InMemory, OnCorrupt, SampleStream, Warn, Workers,
};
use calmix_data::pixel_similarity::{GreyThumbnail, SIDE};
use calmix_formats::image::Image;
use calmix_recipe::Recipe;
use calmix_run::tensor_files::examples::{SIDES, Thumbnails};

use crate::error::LifecycleError;

/// The number of grey thumbnails that are made at once.
const THUMBNAIL_BATCH: u32 = 64;

#[derive(Clone)]
pub struct RunImages {
    pub images: Arc<dyn ImageSource>,
    pub augment: Arc<Augment>,
    pub workers: Workers,
}

impl RunImages {
    /// Opens the images of a dataset. The `processes` of this machine share its loader threads and its memory.
    pub fn new(recipe: &Recipe, dataset: &Arc<Dataset>, processes: usize) -> Self {
        let limit = recipe.loader.memory.saturating_mul(1 << 20) / processes.max(1) as u64;
        let dataset = Arc::clone(dataset);
        let images: Arc<dyn ImageSource> =
            if limit == 0 { dataset } else { Arc::new(InMemory::new(dataset, limit)) };
        let augment = Arc::new(recipe.augment.resolve());
        Self { images, augment, workers: recipe.loader.workers(processes) }
    }

    /// Makes thumbnails of samples in their evaluation view.
    ///
    /// # Errors
    /// [`DataError::Interrupted`] if `stop` becomes true.
    pub fn thumbnails(
        &self,
        ids: &[u64],
        recipe: &Recipe,
        warn: &Warn,
        stop: &AtomicBool,
    ) -> Result<Thumbnails, DataError> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let mut thumbnails = Thumbnails::default();
        for (side, pixels) in SIDES.iter().zip(&mut thumbnails.pixels) {
            let mut seen = Vec::new();
            let mut batches = self.scaled(&ids, *side as u32, recipe)?.warning(Arc::clone(warn));
            while let Some(batch) = batches.next_unless(&mut || stop.load(Ordering::Relaxed)) {
                let batch = batch?;
                seen.extend_from_slice(&batch.ids);
                pixels.extend_from_slice(&batch.pixels);
            }
            thumbnails.ids = seen;
        }
        for &id in &thumbnails.ids {
            thumbnails.names.push(self.images.name(id)?);
        }
        Ok(thumbnails)
    }

    /// Loads samples in order, in their evaluation view at a size of `side` pixels.
    fn scaled(&self, ids: &[u64], side: u32, recipe: &Recipe) -> Result<EvalLoader, DataError> {
        let views = &*self.augment;
        let resize = u64::from(views.evaluation.resize) * u64::from(side) / u64::from(views.size.max(1));
        let evaluation = EvalView { resize: (resize as u32).max(side) };
        let views = Arc::new(Augment { size: side, evaluation, ..views.clone() });
        let stream = SampleStream { ids: ids.into(), batch: SIDES[0] as u32 };
        let corrupt = recipe.loader.corrupt();
        EvalLoader::new(ImageViews::new(Arc::clone(&self.images), views), stream, corrupt, self.workers)
    }

    /// Makes small grey images of samples; leaves out those that cannot be read.
    ///
    /// # Errors
    /// [`LifecycleError::Stopped`] if `stop` becomes true, or the storage does not respond.
    pub fn grey_thumbnails(
        &self,
        ids: &[u64],
        warn: &Warn,
        stop: &AtomicBool,
    ) -> Result<BTreeMap<u64, GreyThumbnail>, LifecycleError> {
        let side = SIDE as u32;
        let views = Augment { size: side, evaluation: EvalView { resize: side }, ..(*self.augment).clone() };
        let images = ImageViews::new(Arc::clone(&self.images), Arc::new(views));
        let stream = SampleStream { ids: ids.into(), batch: THUMBNAIL_BATCH };
        let batches = EvalLoader::new(images, stream, OnCorrupt::Skip { share: 1.0 }, self.workers)?;
        let mut batches = batches.warning(Arc::clone(warn));
        let mut thumbnails = BTreeMap::new();
        while let Some(batch) = batches.next_unless(&mut || stop.load(Ordering::Relaxed)) {
            let batch = match batch {
                Err(DataError::Interrupted) => return Err(LifecycleError::Stopped),
                batch => batch?,
            };
            for (&id, pixels) in batch.ids.iter().zip(batch.pixels.chunks_exact(3 * SIDE * SIDE)) {
                if let Some(image) = Image::new(side, side, pixels.to_vec()) {
                    thumbnails.insert(id, GreyThumbnail::of(&image));
                }
            }
        }
        Ok(thumbnails)
    }
}

impl std::fmt::Debug for RunImages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunImages").field("workers", &self.workers).finish_non_exhaustive()
    }
}
