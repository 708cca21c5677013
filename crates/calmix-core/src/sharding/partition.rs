//! The assignment of the rows of a batch to shards.

use std::ops::Range;

use super::Sharding;
use crate::mixup::Row;

/// The number of rows of each shard of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsPerShard {
    /// Labelled rows.
    pub labelled: usize,
    /// Unlabelled rows.
    pub unlabelled: usize,
}

/// The rows of a batch that belong to one shard, or to several consecutive shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRows {
    /// The range of labelled rows.
    pub labelled: Range<usize>,
    /// The range of unlabelled rows.
    pub unlabelled: Range<usize>,
}

/// The shards of a step that a process runs, and the rows of its batch.
///
/// A step has groups of `labelled` and `unlabelled` rows, each in several shards. The batch has the rows of the shards
/// that the process runs, one shard after the other. `BatchNorm` normalises one shard at a time. Gradients, losses and
/// statistics are added up over all shards of the step in a fixed order, whichever process runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The groups and shards of the whole step.
    pub sharding: Sharding,
    /// The shards that this process runs, in order.
    pub shards: Vec<ShardRows>,
    /// The number of labelled rows per group.
    pub labelled: usize,
    /// The number of unlabelled rows per group.
    pub unlabelled: usize,
}

impl RowsPerShard {
    /// Returns the rows of `shards` in a batch of consecutive shards.
    pub fn of(self, shards: Range<usize>) -> ShardRows {
        ShardRows {
            labelled: shards.start * self.labelled..shards.end * self.labelled,
            unlabelled: shards.start * self.unlabelled..shards.end * self.unlabelled,
        }
    }

    /// Returns the shard of a row of such a batch.
    pub fn shard_of(self, row: Row) -> usize {
        match row {
            Row::Labelled(i) => i / self.labelled.max(1),
            Row::Unlabelled(j) => j / self.unlabelled.max(1),
        }
    }
}

impl Partition {
    /// One group in one shard: all of a batch.
    pub fn whole(labelled: usize, unlabelled: usize) -> Self {
        Self::equal(Sharding::default(), RowsPerShard { labelled, unlabelled }, 1)
    }

    /// A batch with `local` shards of a step.
    pub fn equal(sharding: Sharding, rows: RowsPerShard, local: usize) -> Self {
        let group = rows.of(sharding.of_group(0));
        Self {
            sharding,
            shards: (0..local).map(|shard| rows.of(shard..shard + 1)).collect(),
            labelled: group.labelled.end,
            unlabelled: group.unlabelled.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_their_shard() {
        let rows = RowsPerShard { labelled: 2, unlabelled: 3 };
        assert_eq!(rows.of(1..3), ShardRows { labelled: 2..6, unlabelled: 3..9 });
        for shard in 0..4 {
            let ShardRows { labelled, unlabelled } = rows.of(shard..shard + 1);
            assert!(labelled.map(Row::Labelled).all(|row| rows.shard_of(row) == shard));
            assert!(unlabelled.map(Row::Unlabelled).all(|row| rows.shard_of(row) == shard));
        }
        assert_eq!(RowsPerShard { unlabelled: 0, ..rows }.shard_of(Row::Unlabelled(0)), 0);
    }

    #[test]
    fn equal_shards_have_the_rows_of_their_groups() {
        let rows = RowsPerShard { labelled: 2, unlabelled: 3 };
        let partition = Partition::equal(Sharding::new(2, 4), rows, 2);
        assert_eq!((partition.labelled, partition.unlabelled), (8, 12));
        assert_eq!(partition.shards, [rows.of(0..1), rows.of(1..2)]);
        assert_eq!(Partition::whole(8, 16).shards, [ShardRows { labelled: 0..8, unlabelled: 0..16 }]);
    }
}
