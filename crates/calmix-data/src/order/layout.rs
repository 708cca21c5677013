//! Which rows of a step belong to which logical part of it.

use std::num::NonZeroU32;
use std::ops::Range;

/// How a step is cut, written into a run at its first launch and the same ever after.
///
/// A step has `groups` batches with plans of their own; each is cut into `shards` parts. Processes run one or
/// more parts; nothing else depends on their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Groups of a step.
    pub groups: NonZeroU32,
    /// Parts of a group.
    pub shards: NonZeroU32,
}

/// One part of every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogicalPart {
    /// Its group.
    pub group: u32,
    /// Which part of the group.
    pub shard: u32,
}

impl Default for Layout {
    /// One group, not cut.
    fn default() -> Self {
        Self { groups: NonZeroU32::MIN, shards: NonZeroU32::MIN }
    }
}

impl Layout {
    /// All parts, in the order of their rows.
    pub fn parts(self) -> impl Iterator<Item = LogicalPart> {
        let shards = self.shards.get();
        (0..self.groups.get())
            .flat_map(move |group| (0..shards).map(move |shard| LogicalPart { group, shard }))
    }

    /// The rows of a step that belong to `part`, where each group has `batch` rows; none for a part that the
    /// layout does not have.
    ///
    /// Groups follow each other. A batch that does not divide is cut as evenly as whole rows allow.
    pub fn rows(self, batch: u32, part: LogicalPart) -> Range<u64> {
        if part.group >= self.groups.get() || part.shard >= self.shards.get() {
            return 0..0;
        }
        let first = u64::from(part.group) * u64::from(batch);
        let cut = |shard: u64| first + u64::from(batch) * shard / u64::from(self.shards.get());
        cut(u64::from(part.shard))..cut(u64::from(part.shard) + 1)
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
        fn parts_tile_the_step_evenly(groups in 1_u32..9, shards in 1_u32..9, batch in 0_u32..100) {
            let layout = Layout {
                groups: NonZeroU32::new(groups).unwrap(),
                shards: NonZeroU32::new(shards).unwrap(),
            };
            let mut next = 0;
            for part in layout.parts() {
                let rows = layout.rows(batch, part);
                prop_assert_eq!(rows.start, next);
                let count = rows.end - rows.start;
                prop_assert!(count == u64::from(batch / shards) || count == u64::from(batch.div_ceil(shards)));
                next = rows.end;
            }
            prop_assert_eq!(next, layout.rows_per_step(batch));
        }
    }

    #[test]
    fn a_part_that_does_not_exist_has_no_rows() {
        let layout = Layout::default();
        assert_eq!(layout.rows(64, LogicalPart { group: 0, shard: 0 }), 0..64);
        assert!(layout.rows(64, LogicalPart { group: 1, shard: 0 }).is_empty());
        assert!(layout.rows(64, LogicalPart { group: 0, shard: 1 }).is_empty());
    }

    #[test]
    fn the_largest_layout_does_not_overflow() {
        let layout = Layout { groups: NonZeroU32::MAX, shards: NonZeroU32::MAX };
        let last = LogicalPart { group: u32::MAX - 1, shard: u32::MAX - 1 };
        assert_eq!(layout.rows(u32::MAX, last).end, layout.rows_per_step(u32::MAX));
    }
}
