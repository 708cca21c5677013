//! Near-duplicates among labelled images: by their features, and where these leave doubt, by their pixels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_core::matrix::Matrix;
use calmix_data::augment::{Augment, EvalView};
use calmix_data::error::DataError;
use calmix_data::image::Image;
use calmix_data::loader::{EvalLoader, ImageViews, OnCorrupt, SampleStream, Warn};
use calmix_data::pixel_similarity::{GreyThumbnail, SIDE};
use calmix_head::HeadError;
use calmix_head::near_duplicates::{LabelledFeatures, MAX_LABELS, link_copies};
use calmix_recipe::Recipe;
use calmix_vectors::label_copies::{LabelCopies, compared_unlabelled};

use super::frozen_features::FrozenFeatures;
use super::train_data::TrainData;
use crate::trainer::error::TrainError;

/// Images that are read at once.
const BATCH: u32 = 64;

/// Searches the labelled images of a run for near-duplicates. `mean` is the mean of the features of all images.
///
/// # Errors
/// [`TrainError::Abandoned`] if the run has to stop, or what cannot be read.
pub(crate) fn link_images(
    recipe: &Recipe,
    data: &TrainData,
    frozen: &mut FrozenFeatures,
    mean: &[f32],
    warn: &Warn,
    stop: &AtomicBool,
) -> Result<LabelCopies, TrainError> {
    let samples = &data.samples;
    if !LabelCopies::are_searched(recipe, samples.dataset.has_groups()) {
        return Ok(LabelCopies::default());
    }
    let labelled = samples.labelled();
    if labelled.len() > MAX_LABELS {
        return Ok(LabelCopies::too_many(labelled.len()));
    }
    let mut ids = Vec::new();
    let mut classes = Vec::new();
    for &id in labelled {
        if let Some(class) = samples.class_of(id)? {
            ids.push(id);
            classes.push(class);
        }
    }
    let (found, features) = frozen.clean_features(&ids, stop)?;
    // Images that could not be read have no features.
    let classes: Vec<u32> =
        found.iter().filter_map(|id| ids.binary_search(id).ok()).map(|place| classes[place]).collect();
    let others = compared_unlabelled(labelled, &samples.unlabelled_ids());
    let (others, unlabelled) = frozen.clean_features(&others, stop)?;
    let thumbnails = data.grey_thumbnails(&found, warn, stop)?;
    let compared = LabelledFeatures {
        features: Matrix::new(&features, found.len(), mean.len())?,
        classes: &classes,
        unlabelled: Matrix::new(&unlabelled, others.len(), mean.len())?,
        mean,
    };
    let groups = link_copies(compared, stop, |row, lower| {
        let pair = thumbnails.get(&found[row]).zip(thumbnails.get(&found[lower]));
        Ok::<_, HeadError>(pair.is_some_and(|(image, other)| image.is_copy_of(other)))
    })?;
    Ok(LabelCopies::new(found, groups))
}

impl TrainData {
    /// Small grey images of some samples, without those that cannot be read.
    fn grey_thumbnails(
        &self,
        ids: &[u64],
        warn: &Warn,
        stop: &AtomicBool,
    ) -> Result<BTreeMap<u64, GreyThumbnail>, TrainError> {
        let side = SIDE as u32;
        let views = Augment { size: side, evaluation: EvalView { resize: side }, ..(*self.augment).clone() };
        let images = ImageViews::new(Arc::clone(&self.images), Arc::new(views));
        let stream = SampleStream { ids: ids.into(), batch: BATCH };
        let batches = EvalLoader::new(images, stream, OnCorrupt::Skip { share: 1.0 }, self.workers)?;
        let mut batches = batches.warning(Arc::clone(warn));
        let mut thumbnails = BTreeMap::new();
        while let Some(batch) = batches.next_unless(&mut || stop.load(Ordering::Relaxed)) {
            let batch = match batch {
                Err(DataError::Interrupted) => return Err(TrainError::Abandoned),
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
