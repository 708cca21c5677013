//! The rows of one stream that a process makes.

use std::num::NonZeroU64;

use calmix_core::order::{Cursor, Feed, Membership, Order, Visit};
use calmix_core::rng::{Domain, Seed};

use super::sample_ids::SampleIds;
use super::training::{SampleStream, Training};
use crate::error::DataError;

/// How many replacements of a corrupt sample are tried. At one corrupt sample in ten, all fail once in 10⁸.
pub(super) const REPLACEMENTS: u64 = 8;

/// One stream, restricted to the shards of this process.
pub(super) struct ShardedStream {
    pub(super) is_labelled: bool,
    /// The seed of [`ViewKey`](super::transform::ViewKey).
    pub(super) view_seed: Seed,
    ids: SampleIds,
    /// Nothing for the labelled stream, whose shards take their rows from one order.
    membership: Option<Membership>,
    /// One for each shard that this process runs.
    sources: Vec<ShardSource>,
    /// Rows that a shard takes in a step.
    each: usize,
}

/// Where a shard takes its rows from.
struct ShardSource {
    /// The number of the shard.
    shard: u64,
    feed: Feed,
    /// Which row of the feed is the first of the shard.
    first: u64,
}

/// A sample that may fill a row.
pub(super) struct RowCandidate {
    pub(super) id: u64,
    /// The epoch of the visit.
    pub(super) epoch: u64,
    /// The slot of the sample within its shard; of a labelled sample, within the stream.
    pub(super) slot: u64,
}

impl ShardedStream {
    pub(super) fn new(
        training: &Training,
        samples: &SampleStream,
        domain: Domain,
        view_seed: Seed,
    ) -> Result<Self, DataError> {
        let Training { seed, sharding, ref shards, .. } = *training;
        let SampleStream { ref ids, batch } = *samples;
        let is_labelled = domain == Domain::LabelledOrder;
        let stream = if is_labelled { "labelled" } else { "unlabelled" };
        let uneven = DataError::UnequalShards { stream, rows: batch, shards: sharding.shards.get() };
        let each = sharding.rows_per_shard(batch).ok_or(uneven)?;
        let mut sharded_stream = Self {
            is_labelled,
            view_seed,
            ids: ids.clone(),
            membership: None,
            sources: Vec::new(),
            each: each as usize,
        };
        if each == 0 {
            return Ok(sharded_stream);
        }
        let len = NonZeroU64::new(ids.len()).ok_or(DataError::NoSamples { stream, rows: batch })?;
        if is_labelled {
            let feed = Feed { order: Order { seed, domain, len }, rows: sharding.rows_per_step(batch) };
            let source = |&shard| {
                let first = sharding.rows(batch, shard).start;
                ShardSource { shard: sharding.number(shard), feed, first }
            };
            sharded_stream.sources = shards.iter().map(source).collect();
            return Ok(sharded_stream);
        }
        let too_few = DataError::FewerThanShards { samples: len.get(), shards: sharding.count().get() };
        let membership = Membership::new(seed, len, sharding.count()).ok_or(too_few)?;
        for &shard in shards {
            let number = sharding.number(shard);
            let order = membership.order(number).ok_or(DataError::NoSuchShard(shard))?;
            let feed = Feed { order, rows: each.into() };
            sharded_stream.sources.push(ShardSource { shard: number, feed, first: 0 });
        }
        sharded_stream.membership = Some(membership);
        Ok(sharded_stream)
    }

    /// Rows of a step that this process makes.
    pub(super) fn rows(&self) -> usize {
        self.sources.len() * self.each
    }

    /// What a worker keeps of each shard: its current epoch.
    pub(super) fn cursors(&self) -> Vec<Cursor> {
        self.sources.iter().map(|source| source.feed.order.cursor()).collect()
    }

    /// Samples that may fill a row of this process: first the one at the row's position, then those at the same
    /// position of later epochs. All belong to the shard of the row.
    pub(super) fn candidates(
        &self,
        step: u64,
        row: usize,
        cursors: &mut [Cursor],
    ) -> impl Iterator<Item = RowCandidate> {
        let (nth, row) = (row / self.each, row % self.each);
        let ShardSource { shard, feed, first } = self.sources[nth];
        let position = feed.position(step, first + row as u64);
        let length = feed.order.len.get();
        let later = move |n: u64| feed.order.at(position.wrapping_add(n.wrapping_mul(length)));
        let visits = std::iter::once(cursors[nth].at(position)).chain((1..=REPLACEMENTS).map(later));
        visits.map(move |Visit { epoch, index: slot }| RowCandidate { id: self.id(shard, slot), epoch, slot })
    }

    fn id(&self, shard: u64, slot: u64) -> u64 {
        let index = self.membership.as_ref().map_or(Some(slot), |membership| membership.sample(shard, slot));
        // A slot is below the length that the order was made for.
        index.and_then(|index| self.ids.id(index)).unwrap_or_default()
    }
}
