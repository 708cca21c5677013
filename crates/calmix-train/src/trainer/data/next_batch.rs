//! The batch of a step; and a blank one, for a process that has none but must still take part in the exchange.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_core::sharding::{Partition, ShardRows};
use calmix_data::augment::Augment;
use calmix_data::error::DataError;
use calmix_data::loader::{ImageViews, Loader, PooledBatch, TrainBatch};
use calmix_dist::ProcessGroup;

use super::train_data::TrainData;

/// How long processes that have to stop wait for a batch: with it, all of them can complete the step as usual.
const GRACE: Duration = Duration::from_secs(2);

/// The batch of a step.
///
/// # Errors
/// Why there is none; [`DataError::Interrupted`] if the run has to `stop`.
pub(crate) fn next_batch(
    batches: &mut Loader<ImageViews<Augment>>,
    step: u64,
    processes: &ProcessGroup,
    stop: &AtomicBool,
) -> Result<PooledBatch<TrainBatch>, DataError> {
    let grace = if processes.size() == 1 { Duration::ZERO } else { GRACE };
    let mut asked = None;
    let mut is_over =
        || stop.load(Ordering::Relaxed) && asked.get_or_insert_with(Instant::now).elapsed() >= grace;
    batches.next_unless(&mut is_over).unwrap_or(Err(DataError::NoWorkers { step }))
}

impl TrainData {
    /// A batch of the right size that is not trained on.
    pub(crate) fn blank_batch(&self, step: u64, partition: &Partition) -> TrainBatch {
        let rows = |of: fn(&ShardRows) -> usize| partition.shards.last().map_or(0, of);
        let labelled = rows(|shard| shard.labelled.end);
        let unlabelled = rows(|shard| shard.unlabelled.end);
        let bytes = self.image_bytes();
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
