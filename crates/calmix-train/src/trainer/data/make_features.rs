//! Gets the features of a frozen backbone: from the cache, into which missing ones are computed first, by the run
//! itself or by processes that do nothing else.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::loader::Warn;
use calmix_engine::device::{self, set_threads};
use calmix_engine::precision;
use calmix_recipe::{Recipe, Resolved};
use calmix_run::run::{Paths, Run};
use calmix_run::sink::Sink;
use calmix_vectors::head_vectors::HeadVectors;
use calmix_vectors::label_copies::LabelCopies;

use super::feature_work::{FeaturePlace, FeatureWork, PageShard};
use super::frozen_features::FrozenFeatures;
use super::image_copies::link_images;
use super::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::threads;

/// The sinks that show the progress of the features, and the flag that stops the work.
pub(crate) struct FeatureWatch<'a, 'b> {
    pub(crate) stop: &'a AtomicBool,
    pub(crate) warn: &'a Warn,
    pub(crate) sinks: &'a mut [Box<dyn Sink + 'b>],
}

impl<'a> FeatureWatch<'a, '_> {
    /// The work of making features of these data, whose progress goes to the sinks.
    fn work(self, data: &TrainData) -> FeatureWork<'a> {
        let sinks = self.sinks;
        // An error of a sink does not end the run: the terminal may close.
        let tell = |progress: &_| sinks.iter_mut().for_each(|sink| drop(sink.work(progress)));
        FeatureWork::new(data, self.stop, Arc::clone(self.warn), tell)
    }
}

/// Computes the features of the frozen backbone that a run with this recipe needs, or some pages of them. The dataset has to
/// be prepared; the `processes` of this machine share its cores.
pub(crate) fn make_features(
    mut recipe: Resolved,
    part: PageShard,
    processes: usize,
    watch: FeatureWatch<'_, '_>,
) -> Result<(), TrainError> {
    let train = &recipe.recipe.train;
    let device = train.device.or_else(device::fastest);
    let precision = train.precision.or_else(|| precision::best(device));
    recipe.decide(device, precision, threads(train.threads, processes), 1)?;
    let recipe = &recipe.recipe;
    set_threads(recipe.train.threads as usize);
    // There is no run: the split is drawn, and the cache is elsewhere.
    let data = TrainData::open(recipe, &Paths::new(""), None, processes)?;
    let warn = Arc::clone(watch.warn);
    let mut frozen = FrozenFeatures::open(recipe, FeaturePlace::Shared, &data.samples.fingerprint, warn)?;
    frozen.make(&data.samples.needed(), part, &mut watch.work(&data))
}

/// The vectors of a run, and which of its labels are near-duplicates.
pub(crate) struct RunVectors {
    pub(crate) vectors: HeadVectors,
    pub(crate) copies: LabelCopies,
}

/// The vectors that the head of a run is trained on, computing the features that are missing.
pub(crate) fn vectors_of_run(
    recipe: &Recipe,
    data: &TrainData,
    run: &Run,
    watch: FeatureWatch<'_, '_>,
) -> Result<RunVectors, TrainError> {
    let place = FeaturePlace::Run(run.paths());
    let warn = Arc::clone(watch.warn);
    let stop = watch.stop;
    let mut frozen = FrozenFeatures::open(recipe, place, &data.samples.fingerprint, Arc::clone(&warn))?;
    let mut work = watch.work(data);
    let needed = data.samples.needed();
    // Before hours of work on features that would not fit.
    frozen.memory(recipe, &needed, data.samples.classes.len()).check()?;
    frozen.make(&needed, PageShard::WHOLE, &mut work)?;
    let vectors = frozen.load(recipe, &needed, &mut work)?;
    drop(work);
    frozen.keep(run, &vectors.projection)?;
    let copies = link_images(recipe, data, &mut frozen, vectors.projection.mean(), &warn, stop)?;
    Ok(RunVectors { vectors, copies })
}
