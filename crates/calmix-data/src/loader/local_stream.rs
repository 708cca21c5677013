//! The rows of one stream that a process makes.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use calmix_core::order::{BlockMembership, Membership, Order, Visit};
use calmix_core::rng::{Domain, Seed};

use super::row_order::{Members, RowCursor, RowOrder};
use super::sample_ids::SampleIds;
use super::streams::{FileBlocks, SampleStream, Training};
use crate::error::DataError;

/// How many replacements of a corrupt sample are tried. At one corrupt sample in ten, all fail once in 10⁸.
pub(super) const REPLACEMENTS: u64 = 8;

/// One stream, restricted to the micro-batches of this process.
pub(super) struct LocalStream {
    pub(super) is_labelled: bool,
    /// The seed of [`ViewKey`](super::transform::ViewKey).
    pub(super) view_seed: Seed,
    ids: SampleIds,
    members: Members,
    /// One for each micro-batch that this process runs.
    sources: Vec<MicroBatchSource>,
    /// Rows that a micro-batch takes in a step.
    each: usize,
}

/// Where a micro-batch takes its rows from.
struct MicroBatchSource {
    /// The number of the micro-batch.
    micro_batch: u64,
    order: RowOrder,
    /// Rows that a step takes from the order.
    rows: u64,
    /// Which of them is the first of the micro-batch.
    first: u64,
    /// The end of the last block whose successor was fetched ahead of time.
    prefetched_until: AtomicU64,
}

impl MicroBatchSource {
    fn new(micro_batch: u64, order: RowOrder, rows: u64, first: u64) -> Self {
        Self { micro_batch, order, rows, first, prefetched_until: AtomicU64::new(0) }
    }

    /// The position in the order of a row of a step. After 2⁶⁴ positions the order begins again.
    fn position(&self, step: u64, row: u64) -> u64 {
        step.wrapping_mul(self.rows).wrapping_add(self.first).wrapping_add(row)
    }
}

/// A sample that may fill a row.
pub(super) struct RowCandidate {
    pub(super) id: u64,
    /// The epoch of the visit.
    pub(super) epoch: u64,
    /// The slot of the sample within its micro-batch; of a labelled sample, within the stream.
    pub(super) slot: u64,
}

impl LocalStream {
    pub(super) fn new(
        training: &Training,
        samples: &SampleStream,
        domain: Domain,
        view_seed: Seed,
    ) -> Result<Self, DataError> {
        let Training { seed, micro_batching, ref micro_batches, .. } = *training;
        let SampleStream { ref ids, batch } = *samples;
        let is_labelled = domain == Domain::LabelledOrder;
        let stream = if is_labelled { "labelled" } else { "unlabelled" };
        let uneven =
            DataError::UnevenBatch { stream, rows: batch, micro_batches: micro_batching.micro_batches.get() };
        let each = micro_batching.rows_per_micro_batch(batch).ok_or(uneven)?;
        let mut local_stream = Self {
            is_labelled,
            view_seed,
            ids: ids.clone(),
            members: Members::Shared,
            sources: Vec::new(),
            each: each as usize,
        };
        if each == 0 {
            return Ok(local_stream);
        }
        let len = NonZeroU64::new(ids.len()).ok_or(DataError::NoSamples { stream, rows: batch })?;
        if is_labelled {
            let order = Order { seed, domain, len };
            let source = |&micro_batch| {
                let first = micro_batching.rows(batch, micro_batch).start;
                let rows = micro_batching.rows_per_step(batch);
                MicroBatchSource::new(
                    micro_batching.number(micro_batch),
                    RowOrder::Samples(order),
                    rows,
                    first,
                )
            };
            local_stream.sources = micro_batches.iter().map(source).collect();
            return Ok(local_stream);
        }
        let too_few =
            DataError::TooFewUnlabelled { samples: len.get(), micro_batches: micro_batching.count().get() };
        let micro_batch_count = micro_batching.count();
        let members = match &training.blocks {
            Some(FileBlocks { lengths, files }) => {
                BlockMembership::new(seed, lengths, micro_batch_count, *files).map(Members::Blocks)
            }
            None => Membership::new(seed, len, micro_batch_count).map(Members::Samples),
        };
        let members = members.ok_or(too_few)?;
        for &micro_batch in micro_batches {
            let number = micro_batching.number(micro_batch);
            let order = match &members {
                Members::Blocks(membership) => membership.order(number).map(RowOrder::Blocks),
                Members::Samples(membership) => membership.order(number).map(RowOrder::Samples),
                Members::Shared => None,
            };
            let order = order.ok_or(DataError::NoSuchMicroBatch(micro_batch))?;
            local_stream.sources.push(MicroBatchSource::new(number, order, each.into(), 0));
        }
        local_stream.members = members;
        Ok(local_stream)
    }

    /// Rows of a step that this process makes.
    pub(super) fn rows(&self) -> usize {
        self.sources.len() * self.each
    }

    /// What a worker keeps of each micro-batch.
    pub(super) fn cursors(&self) -> Vec<RowCursor> {
        self.sources.iter().map(|source| source.order.cursor()).collect()
    }

    /// Samples that may fill a row of this process: first the one at the row's position, then those at the same
    /// position of later epochs. All belong to the micro-batch of the row.
    pub(super) fn candidates(
        &self,
        step: u64,
        row: usize,
        cursors: &mut [RowCursor],
    ) -> impl Iterator<Item = RowCandidate> {
        let (nth, row) = (row / self.each, row % self.each);
        let source = &self.sources[nth];
        let micro_batch = source.micro_batch;
        let position = source.position(step, row as u64);
        let length = source.order.len();
        let later = move |n: u64| source.order.at(position.wrapping_add(n.wrapping_mul(length)));
        let visits = std::iter::once(cursors[nth].at(position)).chain((1..=REPLACEMENTS).map(later));
        visits.map(move |Visit { epoch, index: slot }| RowCandidate {
            id: self.id(micro_batch, slot),
            epoch,
            slot,
        })
    }

    /// One sample of each file that will be needed soon, if `step` is the first that needs a block: those of the block, if it
    /// is the first one, and those of the next block.
    pub(super) fn prefetch_ids(&self, step: u64) -> Vec<u64> {
        let mut ids = Vec::new();
        for source in &self.sources {
            let mut cursor = source.order.cursor();
            let position = source.position(step, 0);
            let Some(block) = cursor.block(position) else { continue };
            let before = source.prefetched_until.swap(block.positions.end, Ordering::Relaxed);
            if before == block.positions.end {
                continue;
            }
            // A stream that begins or is resumed here has fetched nothing ahead yet.
            let is_first = before == 0;
            let next = cursor.block(block.positions.end).map(|next| next.first_slots).unwrap_or_default();
            let soon = block.first_slots.into_iter().filter(|_| is_first).chain(next);
            ids.extend(soon.map(|slot| self.id(source.micro_batch, slot)));
        }
        ids
    }

    fn id(&self, micro_batch: u64, slot: u64) -> u64 {
        let index = self.members.sample(micro_batch, slot);
        // A slot is below the length that the order was made for.
        index.and_then(|index| self.ids.id(index)).unwrap_or_default()
    }
}
