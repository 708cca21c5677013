//! Groups and shards: how a step is divided, whichever processes run it, and which rows belong to which shard.
//!
//! This is the only description of them: the loader draws the rows of a shard by it, the engine trains shard by shard, and
//! the trainer only adds which process runs which shards.

mod partition;

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

pub use partition::{Partition, RowsPerShard, ShardRows};

/// How a step is divided into shards. A run stores it at its first launch and never changes it.
///
/// A step has `groups` batches, each with its own plan; each batch is cut into `shards` shards. Processes run one
/// or more shards; nothing else depends on the number of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    /// The number of groups per step.
    pub groups: NonZeroU32,
    /// The number of shards per group.
    pub shards: NonZeroU32,
}

/// One logical shard of every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// The group of the shard.
    pub group: u32,
    /// The index of the shard in its group.
    pub index: u32,
}

impl Default for Sharding {
    /// One group of one shard.
    fn default() -> Self {
        Self { groups: NonZeroU32::MIN, shards: NonZeroU32::MIN }
    }
}

impl Sharding {
    /// Returns `groups` groups of `shards` shards each; zero counts as one.
    pub fn new(groups: u32, shards: u32) -> Self {
        let some = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self { groups: some(groups), shards: some(shards) }
    }

    /// Iterates over all shards, in the order of their rows.
    pub fn all(self) -> impl Iterator<Item = Shard> {
        let shards = self.shards.get();
        (0..self.groups.get()).flat_map(move |group| (0..shards).map(move |index| Shard { group, index }))
    }

    /// Returns the number of all shards.
    pub fn count(self) -> NonZeroU64 {
        NonZeroU64::from(self.groups).saturating_mul(self.shards.into())
    }

    /// Returns the index of a shard among all shards, one group after the other.
    pub fn number(self, shard: Shard) -> u64 {
        u64::from(shard.group) * u64::from(self.shards.get()) + u64::from(shard.index)
    }

    /// Returns the indices of the shards of a group.
    pub fn of_group(self, group: usize) -> Range<usize> {
        let shards = self.shards.get() as usize;
        group * shards..(group + 1) * shards
    }

    /// Returns whether the shard exists.
    pub fn has(self, shard: Shard) -> bool {
        shard.group < self.groups.get() && shard.index < self.shards.get()
    }

    /// Returns the rows per shard if each group has `batch` rows; `None` if they cannot be cut into equal shards.
    pub fn rows_per_shard(self, batch: u32) -> Option<u32> {
        batch.is_multiple_of(self.shards.get()).then(|| batch / self.shards)
    }

    /// Returns the rows of a step that belong to `shard` if each group has `batch` rows; an empty range for a shard that
    /// does not exist.
    ///
    /// Groups follow each other. Shards are equal; if a batch [cannot be cut evenly](Self::rows_per_shard), the remaining
    /// rows belong to no shard.
    pub fn rows(self, batch: u32, shard: Shard) -> Range<u64> {
        if !self.has(shard) {
            return 0..0;
        }
        let each = u64::from(batch / self.shards);
        let first = u64::from(shard.group) * u64::from(batch) + u64::from(shard.index) * each;
        first..first + each
    }

    /// Returns the number of rows of a whole step.
    pub fn rows_per_step(self, batch: u32) -> u64 {
        u64::from(self.groups.get()) * u64::from(batch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_shards_tile_the_step(groups in 1_u32..9, shards in 1_u32..9, each in 0_u32..20) {
            let sharding = Sharding {
                groups: NonZeroU32::new(groups).unwrap(),
                shards: NonZeroU32::new(shards).unwrap(),
            };
            let batch = shards * each;
            prop_assert_eq!(sharding.rows_per_shard(batch), Some(each));
            let (mut next, mut number) = (0, 0);
            for shard in sharding.all() {
                let rows = sharding.rows(batch, shard);
                prop_assert_eq!((rows.start, sharding.number(shard)), (next, number));
                prop_assert_eq!(rows.end - rows.start, u64::from(each));
                next = rows.end;
                number += 1;
            }
            prop_assert_eq!((next, number), (sharding.rows_per_step(batch), sharding.count().get()));
        }

        #[test]
        fn a_batch_that_does_not_divide_has_no_equal_shards(shards in 2_u32..99, each in 0_u32..99, rest in 1_u32..98) {
            prop_assume!(rest < shards);
            let sharding = Sharding { shards: NonZeroU32::new(shards).unwrap(), ..Sharding::default() };
            prop_assert_eq!(sharding.rows_per_shard(shards * each + rest), None);
        }
    }

    #[test]
    fn a_shard_that_does_not_exist_has_no_rows() {
        let sharding = Sharding::default();
        assert_eq!(sharding.rows(64, Shard { group: 0, index: 0 }), 0..64);
        assert!(sharding.rows(64, Shard { group: 1, index: 0 }).is_empty());
        assert!(sharding.rows(64, Shard { group: 0, index: 1 }).is_empty());
    }

    #[test]
    fn the_largest_layout_does_not_overflow() {
        let sharding = Sharding { groups: NonZeroU32::MAX, shards: NonZeroU32::MAX };
        let last = Shard { group: u32::MAX - 1, index: u32::MAX - 1 };
        assert_eq!(sharding.rows(u32::MAX, last).end, sharding.rows_per_step(u32::MAX));
        assert_eq!(sharding.number(last), sharding.count().get() - 1);
    }
}
