//! A run that trains a head on the features of a frozen backbone: its vectors come from images, the rest is `calmix-vectors`.

use calmix_data::error::DataError;
use calmix_engine::device::set_threads;
use calmix_run::event_writer::EventWriter;
use calmix_run::examples::Thumbnails;
use calmix_run::run::Mark;
use calmix_vectors::evaluate_head::HeadEvaluator;
use calmix_vectors::run_head::HeadRun;

use super::data::make_features::{FeatureWatch, RunVectors, vectors_of_run};
use super::error::TrainError;
use super::lifecycle::open_run::OpenedRun;
use super::{Outcome, Trainer};

impl Trainer<'_> {
    /// Trains the heads of an opened run from the beginning, whether it began before or not.
    pub(super) fn run_head(mut self, opened: OpenedRun) -> Result<Outcome, TrainError> {
        let OpenedRun { recipe: resolved, data, run, notes, .. } = opened;
        let run =
            run.ok_or_else(|| TrainError::Unsupported("a head is trained in one process".to_owned()))?;
        let recipe = &resolved.recipe;
        set_threads(recipe.train.threads as usize);
        let watch = FeatureWatch { stop: self.stop, warn: &self.warn, sinks: &mut self.sinks };
        let RunVectors { vectors, copies } = vectors_of_run(recipe, &data, &run, watch)?;
        let mut events = EventWriter::new(run, &Mark::start(), 0, recipe, self.sinks)?;
        events.begins(0);
        for note in notes {
            events.aside(note)?;
        }
        let evaluator = HeadEvaluator { recipe, samples: &data.samples, vectors: &vectors, stop: self.stop };
        let thumbnails = |ids: &[u64]| -> Result<Thumbnails, DataError> {
            data.thumbnails(ids, recipe, &self.warn, self.stop)
        };
        let finished = HeadRun { evaluator, events, thumbnails: &thumbnails, copies }.run()?;
        Ok(Outcome::Finished(finished))
    }
}
