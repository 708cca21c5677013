//! Which rows of a step belong to which logical shard of it.

use std::num::NonZeroU32;
use std::ops::Range;

/// How a step is cut, written into a run at its first launch and the same ever after.
///
/// A step has `groups` batches with plans of their own; each is cut into `shards` shards. Processes run one
/// or more shards; nothing else depends on their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    /// Groups of a step.
    pub groups: NonZeroU32,
    /// Shards of a group.
    pub shards: NonZeroU32,
}

/// One logical shard of every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// Its group.
    pub group: u32,
    /// Which shard of the group.
    pub index: u32,
}

impl Default for Sharding {
    /// One group, not cut.
    fn default() -> Self {
        Self { groups: NonZeroU32::MIN, shards: NonZeroU32::MIN }
    }
}

impl Sharding {
    /// All shards, in the order of their rows.
    pub fn all(self) -> impl Iterator<Item = Shard> {
        let shards = self.shards.get();
        (0..self.groups.get()).flat_map(move |group| (0..shards).map(move |index| Shard { group, index }))
    }

    /// The rows of a step that belong to `shard`, where each group has `batch` rows; none for a shard that the
    /// sharding does not have.
    ///
    /// Groups follow each other. A batch that does not divide is cut as evenly as whole rows allow.
    pub fn rows(self, batch: u32, shard: Shard) -> Range<u64> {
        if shard.group >= self.groups.get() || shard.index >= self.shards.get() {
            return 0..0;
        }
        let first = u64::from(shard.group) * u64::from(batch);
        let cut = |index: u64| first + u64::from(batch) * index / u64::from(self.shards.get());
        cut(u64::from(shard.index))..cut(u64::from(shard.index) + 1)
    }

    /// Rows of a whole step.
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
        fn shards_tile_the_step_evenly(groups in 1_u32..9, shards in 1_u32..9, batch in 0_u32..100) {
            let sharding = Sharding {
                groups: NonZeroU32::new(groups).unwrap(),
                shards: NonZeroU32::new(shards).unwrap(),
            };
            let mut next = 0;
            for shard in sharding.all() {
                let rows = sharding.rows(batch, shard);
                prop_assert_eq!(rows.start, next);
                let count = rows.end - rows.start;
                prop_assert!(count == u64::from(batch / shards) || count == u64::from(batch.div_ceil(shards)));
                next = rows.end;
            }
            prop_assert_eq!(next, sharding.rows_per_step(batch));
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
    }
}
