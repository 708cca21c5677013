//! The rows of one stream that this process makes.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use calmix_core::order::{BlockMembership, Membership, Order, Visit};
use calmix_core::rng::{Domain, Seed};

use super::row_order::{Members, RowCursor, RowOrder};
use super::sample_ids::SampleIds;
use super::streams::{FileBlocks, SampleStream, Training};
use crate::error::DataError;

/// The maximum number of replacements of a corrupt sample. If one sample in ten is corrupt, all fail once in 10⁸.
pub(super) const REPLACEMENTS: u64 = 8;

/// One stream, restricted to the micro-batches of this process.
pub(super) struct LocalStream {
    pub(super) is_labelled: bool,
    /// The seed of [`ViewKey`](super::views::ViewKey).
    pub(super) view_seed: Seed,
    ids: SampleIds,
    members: Members,
    /// One source per micro-batch of this process.
    sources: Vec<MicroBatchSource>,
    /// Rows per micro-batch and step.
    each: usize,
}

/// The source of a micro-batch's rows.
struct MicroBatchSource {
    /// The number of the micro-batch.
    micro_batch: u64,
    order: RowOrder,
    /// Rows per step in the order, over all micro-batches that share it.
    rows: u64,
    /// The offset of this micro-batch within these rows.
    first: u64,
    /// The end of the last block whose successor was prefetched.
    prefetched_until: AtomicU64,
}

impl MicroBatchSource {
    fn new(micro_batch: u64, order: RowOrder, rows: u64, first: u64) -> Self {
        Self { micro_batch, order, rows, first, prefetched_until: AtomicU64::new(0) }
    }

    /// Returns the position of a row of a step in the order, which wraps around after 2⁶⁴ positions.
    fn position(&self, step: u64, row: u64) -> u64 {
        step.wrapping_mul(self.rows).wrapping_add(self.first).wrapping_add(row)
    }
}

/// A candidate sample for a row.
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

    /// Returns the number of rows per step of this process.
    pub(super) fn rows(&self) -> usize {
        self.sources.len() * self.each
    }

    /// Makes the state that a worker keeps for each micro-batch.
    pub(super) fn cursors(&self) -> Vec<RowCursor> {
        self.sources.iter().map(|source| source.order.cursor()).collect()
    }

    /// Iterates over the candidates for a row: the sample at the row's position, then those at the same position of later
    /// epochs. All belong to the micro-batch of the row.
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

    /// Returns one sample per file to prefetch, if `step` is the first to read from its block: the files of the next block,
    /// and those of this block if nothing was prefetched yet.
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
            // A new or resumed stream has not prefetched anything yet.
            let is_first = before == 0;
            let next = cursor.block(block.positions.end).map(|next| next.first_slots).unwrap_or_default();
            let soon = block.first_slots.into_iter().filter(|_| is_first).chain(next);
            ids.extend(soon.map(|slot| self.id(source.micro_batch, slot)));
        }
        ids
    }

    fn id(&self, micro_batch: u64, slot: u64) -> u64 {
        let index = self.members.sample(micro_batch, slot);
        // A slot is below the length of the order.
        index.and_then(|index| self.ids.id(index)).unwrap_or_default()
    }
}
