//! Where a run gets the features of its frozen backbone: from the cache, which is filled with what it lacks, by the run
//! itself or by processes that do nothing else.

use std::sync::Arc;

use calmix_engine::device::{Device, set_threads};
use calmix_engine::precision::Precision;
use calmix_run::run::{Paths, Run};

use super::error::TrainError;
use super::feature_place::FeaturePlace;
use super::frozen_features::{FeatureWork, FrozenFeatures, HeadInput, PageShard};
use super::train_data::TrainData;
use super::{Trainer, threads};
use crate::recipe::{Recipe, Resolved};

impl Trainer<'_> {
    /// Makes the features that a run with this recipe takes of its frozen backbone, or this process's part of them. The
    /// dataset has to be prepared.
    ///
    /// # Errors
    /// If the recipe has no head, or its dataset or its backbone cannot be used; [`TrainError::Abandoned`] if it has to stop,
    /// and the cache keeps what was made.
    pub fn make_features(mut self, recipe: &Resolved, part: PageShard) -> Result<(), TrainError> {
        let mut recipe = recipe.clone();
        let train = &recipe.recipe.train;
        let device = train.device.or_else(|| Device::all().first().copied().unwrap_or(Device::Cpu));
        let precision = train.precision.or_else(|| Precision::best(device));
        recipe.decide(device, precision, threads(train.threads, self.local.processes), 1)?;
        let recipe = &recipe.recipe;
        set_threads(recipe.train.threads as usize);
        // There is no run: the split is drawn, and the cache is elsewhere.
        let data = TrainData::open(recipe, &Paths::new(""), None, self.local.processes)?;
        let mut frozen =
            FrozenFeatures::open(recipe, FeaturePlace::Shared, &data.fingerprint, Arc::clone(&self.warn))?;
        frozen.make(&data.needed(), part, &mut self.feature_work(&data))
    }

    /// The data of a run in the features of its frozen backbone, which are made where they are missing; as it is where the
    /// whole network learns.
    pub(super) fn in_features(
        &mut self,
        recipe: &Recipe,
        data: TrainData,
        run: Option<&Run>,
    ) -> Result<(TrainData, Option<HeadInput>), TrainError> {
        let Some(run) = run.filter(|_| recipe.has_head()) else { return Ok((data, None)) };
        let mut work = self.feature_work(&data);
        let mut frozen = FrozenFeatures::open(
            recipe,
            FeaturePlace::Run(run.paths()),
            &data.fingerprint,
            Arc::clone(&work.warn),
        )?;
        let needed = data.needed();
        frozen.make(&needed, PageShard::WHOLE, &mut work)?;
        let (views, input) = frozen.load(recipe, &needed, data.classes_of().to_vec(), &mut work)?;
        drop(work);
        frozen.keep(run, &input)?;
        Ok((data.with_features(views), Some(input)))
    }

    /// The work of making features of these data, whose progress goes to the sinks.
    fn feature_work<'b>(&'b mut self, data: &TrainData) -> FeatureWork<'b> {
        let (stop, warn, sinks) = (self.stop, Arc::clone(&self.warn), &mut self.sinks);
        // People may stop watching.
        let tell = |progress: &_| sinks.iter_mut().for_each(|sink| drop(sink.features(progress)));
        FeatureWork::new(data, stop, warn, tell)
    }
}
