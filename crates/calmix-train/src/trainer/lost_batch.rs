//! The end of a run whose next batch cannot be made, or is not waited for because the run has to stop: what was learnt
//! before it is saved first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_data::loader::{LoadError, Loader, PooledBatch, TrainBatch};

use super::Outcome;
use super::collect_results::all_gather_results;
use super::error::TrainError;
use super::run_views::RunViews;
use super::stepper::Stepper;
use super::sync::Heartbeat;
use super::train_loop::TrainLoop;
use calmix_run::events::Note;

/// How long several processes that have to stop wait for a batch: all of them can make the step then, as usual.
const GRACE: Duration = Duration::from_secs(2);

impl Stepper {
    /// The batch of a step.
    ///
    /// # Errors
    /// Why there is none; [`LoadError::Interrupted`] if the run has to `stop`.
    pub(super) fn next_batch(
        &self,
        batches: &mut Loader<RunViews>,
        step: u64,
        stop: &AtomicBool,
    ) -> Result<PooledBatch<TrainBatch>, LoadError> {
        let grace = if self.layout.processes.size() == 1 { Duration::ZERO } else { GRACE };
        let mut asked = None;
        let mut is_over =
            || stop.load(Ordering::Relaxed) && asked.get_or_insert_with(Instant::now).elapsed() >= grace;
        batches.next_unless(&mut is_over).unwrap_or(Err(LoadError::NoWorkers { step }))
    }

    /// A batch of the right size, from which nothing is learnt.
    fn blank_batch(&self, step: u64) -> TrainBatch {
        let rows = |of: fn(&calmix_engine::partition::ShardRows) -> usize| {
            self.partition.shards.last().map_or(0, of)
        };
        let (labelled, unlabelled) = (rows(|shard| shard.labelled.end), rows(|shard| shard.unlabelled.end));
        let bytes = self.data.image_bytes();
        let mut batch = TrainBatch { step, ..TrainBatch::default() };
        batch.labelled.ids = vec![0; labelled];
        batch.labelled.epochs = vec![0; labelled];
        batch.labelled.labels = vec![0; labelled];
        batch.labelled.pixels = vec![0; labelled * bytes];
        batch.unlabelled.ids = vec![0; unlabelled];
        batch.unlabelled.epochs = vec![0; unlabelled];
        batch.unlabelled.slots = vec![0; unlabelled];
        batch.unlabelled.weak = vec![0; unlabelled * bytes];
        batch.unlabelled.strong = vec![0; unlabelled * bytes];
        batch
    }
}

impl TrainLoop<'_> {
    /// Ends a run at the boundary between two steps, since a process has no batch for the next one: this process, for the
    /// reason in `own`, or another.
    ///
    /// # Errors
    /// Why there is no batch, unless the run has to stop; the state is saved in any case, where that is possible.
    pub(super) fn end_without_batch(mut self, own: Option<LoadError>) -> Result<Outcome, TrainError> {
        if own.is_some() && self.stepper.layout.processes.size() > 1 {
            // The others are about to gather what all know of the step: this one takes part, and says that it is lost.
            let (blank, says) = (self.stepper.blank_batch(self.step), self.heartbeat());
            self.stepper.step(&blank, Heartbeat { lost: true, ..says })?;
        }
        let own = own.filter(|error| !matches!(error, LoadError::Interrupted)).map_or(Ok(()), Err);
        match all_gather_results(&self.stepper.layout.processes, own) {
            Ok(_) => self.stopped(),
            Err(error @ TrainError::Processes(_)) => Err(error),
            Err(error) => {
                if let Err(problem) = self.save() {
                    let text = format!("the run cannot be saved either: {problem}");
                    let hint = "its last checkpoint is intact".to_owned();
                    self.events.aside(Note { step: self.step, text, hint })?;
                }
                self.events.flush()?;
                Err(error)
            }
        }
    }
}
