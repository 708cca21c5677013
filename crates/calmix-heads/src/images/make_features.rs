//! Gets the features of a frozen backbone: from the cache, into which missing ones are computed first, by the run
//! itself or by processes that do nothing else.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::run_images::RunImages;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_lifecycle::threads::threads;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::run::{Paths, Run};

use super::feature_work::{FeaturePlace, FeatureWork, PageShard};
use super::frozen_features::FrozenFeatures;
use super::image_copies::link_images;
use crate::error::HeadsError;
use crate::head_runtime::{check_head, decide_head};
use crate::head_vectors::HeadVectors;
use crate::label_copies::LabelCopies;

/// The work of making features of these images, whose progress goes to the sinks.
fn work<'a>(request: &'a mut RunRequest<'_>, images: &RunImages) -> FeatureWork<'a> {
    let RunRequest { stop, warn, sinks, .. } = request;
    // An error of a sink does not end the run: the terminal may close.
    let tell = |progress: &_| sinks.iter_mut().for_each(|sink| drop(sink.work(progress)));
    FeatureWork::new(images, stop, Arc::clone(warn), tell)
}

/// Computes the features of the frozen backbone that a run with this recipe needs, or this process's part of them. The
/// dataset has to be prepared.
///
/// # Errors
/// If the recipe has no head, or its dataset or its backbone cannot be used; [`HeadsError::Stopped`] if it has to stop, and the
/// cache keeps what was computed.
pub fn make_features(
    mut request: RunRequest<'_>,
    recipe: &Resolved,
    part: PageShard,
) -> Result<(), HeadsError> {
    check_head(&recipe.recipe)?;
    let mut recipe = recipe.clone();
    let threads = threads(recipe.recipe.train.threads, 1);
    decide_head(&mut recipe, threads)?;
    let recipe = &recipe.recipe;
    // There is no run: the split is drawn, and the cache is elsewhere.
    let samples = RunSamples::open(recipe, &Paths::new(""), None)?;
    let images = RunImages::new(recipe, &samples.dataset, 1);
    let warn = Arc::clone(&request.warn);
    let mut frozen = FrozenFeatures::open(recipe, FeaturePlace::Shared, &samples.fingerprint, warn)?;
    frozen.make(&samples.needed(), part, &mut work(&mut request, &images))
}

/// The vectors of a run, and which of its labels are near-duplicates.
pub(crate) struct RunVectors {
    pub(crate) vectors: HeadVectors,
    pub(crate) copies: LabelCopies,
}

/// The vectors that the head of a run is trained on, computing the features that are missing.
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
    let mut frozen = FrozenFeatures::open(recipe, place, &samples.fingerprint, Arc::clone(&warn))?;
    let mut work = work(request, images);
    let needed = samples.needed();
    // Before hours of work on features that would not fit.
    frozen.memory(recipe, &needed, samples.classes.len()).check()?;
    frozen.make(&needed, PageShard::WHOLE, &mut work)?;
    let vectors = frozen.load(recipe, &needed, &mut work)?;
    drop(work);
    frozen.keep(run, &vectors.projection)?;
    let copies = link_images(recipe, samples, images, &mut frozen, vectors.projection.mean(), &warn, stop)?;
    Ok(RunVectors { vectors, copies })
}

/// The vectors that the head of a run is evaluated on. Features are computed in memory: those in a folder may have been
/// written by another user.
pub(crate) fn vectors_to_evaluate(
    recipe: &Recipe,
    samples: &RunSamples,
    paths: &Paths,
    stop: &AtomicBool,
) -> Result<HeadVectors, HeadsError> {
    let images = RunImages::new(recipe, &samples.dataset, 1);
    let mut work = FeatureWork::new(&images, stop, Arc::new(|_| {}), |_| {});
    let place = FeaturePlace::Memory(paths);
    let mut frozen = FrozenFeatures::open(recipe, place, &samples.fingerprint, Arc::clone(&work.warn))?;
    let needed = samples.needed_to_evaluate();
    frozen.make(&needed, PageShard::WHOLE, &mut work)?;
    frozen.load(recipe, &needed, &mut work)
}
