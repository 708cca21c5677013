//! Near-duplicates among labelled images: by their features, and where these leave doubt, by their pixels.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_data::loader::Warn;
use calmix_head::HeadError;
use calmix_head::near_duplicates::{LabelledFeatures, MAX_LABELS, link_copies};
use calmix_lifecycle::run_images::RunImages;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_recipe::Recipe;

use super::frozen_features::FrozenFeatures;
use crate::error::HeadsError;
use crate::label_copies::{LabelCopies, compared_unlabelled};

/// Searches the labelled images of a run for near-duplicates. `mean` is the mean of the features of all images.
///
/// # Errors
/// [`HeadsError::Stopped`] if the run has to stop, or what cannot be read.
pub(crate) fn link_images(
    recipe: &Recipe,
    samples: &RunSamples,
    images: &RunImages,
    frozen: &mut FrozenFeatures,
    mean: &[f32],
    warn: &Warn,
    stop: &AtomicBool,
) -> Result<LabelCopies, HeadsError> {
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
    let thumbnails = images.grey_thumbnails(&found, warn, stop)?;
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
