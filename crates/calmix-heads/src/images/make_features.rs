//! The computation of a frozen backbone's features, by a run itself or by processes that do nothing else, and the search for
//! near-duplicates among the labelled images by features and pixels.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_data::loader::Warn;
use calmix_head::HeadError;
use calmix_head::near_duplicates::{LabelledFeatures, MAX_LABELS, link_copies};
use calmix_head::projection::Projection;
use calmix_lifecycle::request::{RunRequest, threads};
use calmix_lifecycle::run_images::RunImages;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::run::{Paths, Run};
use calmix_run::sink::WorkProgress;

use super::frozen_features::FrozenFeatures;
use super::{FeaturePlace, FeatureWork, PagePart};
use crate::error::HeadsError;
use crate::head_settings::{check_head, decide_head};
use crate::head_vectors::HeadVectors;
use crate::label_copies::{LabelCopies, compared_unlabelled};

/// Creates the computation of features of these images; its progress goes to the sinks.
fn work<'a>(request: &'a mut RunRequest<'_>, images: &'a RunImages) -> FeatureWork<'a> {
    let RunRequest { stop, warn, sinks, .. } = request;
    let sinks = RefCell::new(sinks);
    // An error of a sink does not end the run: a terminal may have been closed.
    let on_progress = move |progress: &WorkProgress| {
        sinks.borrow_mut().iter_mut().for_each(|sink| drop(sink.work(progress)));
    };
    FeatureWork { images, stop, warn: Arc::clone(warn), on_progress: Box::new(on_progress) }
}

/// Computes this process's part of the features that a run with this recipe needs. The dataset must be prepared.
///
/// # Errors
/// If the recipe has no head, or its dataset or its backbone cannot be used; [`HeadsError::Stopped`] if it has to stop, and the
/// cache keeps what was computed.
pub fn make_features(
    mut request: RunRequest<'_>,
    recipe: &Resolved,
    part: PagePart,
) -> Result<(), HeadsError> {
    check_head(&recipe.recipe)?;
    let mut recipe = recipe.clone();
    let threads = threads(recipe.recipe.train.threads, 1);
    decide_head(&mut recipe, threads)?;
    let recipe = &recipe.recipe;
    // Without a run, the split is drawn here; the recipe names the cache.
    let samples = RunSamples::open(recipe, &Paths::new(""), None)?;
    let images = RunImages::new(recipe, &samples.dataset, 1);
    let warn = Arc::clone(&request.warn);
    let mut frozen = FrozenFeatures::open(recipe, FeaturePlace::Shared, &samples.dataset, warn)?;
    frozen.make(&samples.needed(), part, &work(&mut request, &images))
}

/// The vectors of a run, and the near-duplicates among its labels.
pub(crate) struct RunVectors {
    pub(crate) vectors: HeadVectors,
    pub(crate) copies: LabelCopies,
}

/// Loads the vectors that the head of a run is trained on, after computing missing features.
pub(crate) fn vectors_of_run(
    recipe: &Recipe,
    samples: &RunSamples,
    images: &RunImages,
    run: &Run,
    request: &mut RunRequest<'_>,
) -> Result<RunVectors, HeadsError> {
    let place = FeaturePlace::Run(run.paths());
    let warn = Arc::clone(&request.warn);
    let stop = request.stop;
    let mut frozen = FrozenFeatures::open(recipe, place, &samples.dataset, Arc::clone(&warn))?;
    let work = work(request, images);
    let needed = samples.needed();
    // Refuse now, before hours of work on features that would not fit.
    frozen.memory(recipe, &needed, samples.classes.len()).check()?;
    frozen.make(&needed, PagePart::ALL, &work)?;
    let vectors = frozen.load(recipe, &needed, &work)?;
    drop(work);
    frozen.copy_to_run(run, &vectors.projection)?;
    let copies = link_images(recipe, samples, images, &mut frozen, &vectors.projection, &warn, stop)?;
    Ok(RunVectors { vectors, copies })
}

/// Loads the vectors that the head of a run is evaluated on. Features are computed in memory: those in the run's folder may have
/// been written by another user.
pub(crate) fn vectors_to_evaluate(
    recipe: &Recipe,
    samples: &RunSamples,
    paths: &Paths,
    stop: &AtomicBool,
) -> Result<HeadVectors, HeadsError> {
    let images = RunImages::new(recipe, &samples.dataset, 1);
    let work = FeatureWork { images: &images, stop, warn: Arc::new(|_| {}), on_progress: Box::new(|_| {}) };
    let place = FeaturePlace::Memory(paths);
    let mut frozen = FrozenFeatures::open(recipe, place, &samples.dataset, Arc::clone(&work.warn))?;
    let needed = samples.needed_to_evaluate();
    frozen.make(&needed, PagePart::ALL, &work)?;
    frozen.load(recipe, &needed, &work)
}

/// Searches the labelled images of a run for near-duplicates. `projection` is that of their features.
///
/// # Errors
/// [`HeadsError::Stopped`] if the run has to stop; the errors of reading images and features.
fn link_images(
    recipe: &Recipe,
    samples: &RunSamples,
    images: &RunImages,
    frozen: &mut FrozenFeatures,
    projection: &Projection,
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
        features: Matrix::new(&features, found.len(), projection.width())?,
        classes: &classes,
        unlabelled: Matrix::new(&unlabelled, others.len(), projection.width())?,
        projection,
    };
    let groups = link_copies(compared, stop, |row, lower| {
        let pair = thumbnails.get(&found[row]).zip(thumbnails.get(&found[lower]));
        Ok::<_, HeadError>(pair.is_some_and(|(image, other)| image.is_copy_of(other)))
    })?;
    Ok(LabelCopies::new(found, groups))
}
