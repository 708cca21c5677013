//! The division of a step into groups and micro-batches, and the rows of each, whichever processes run it.
//!
//! This is the only description of it: the loader draws the rows of a micro-batch by it, the engine trains micro-batch by
//! micro-batch, and the trainer only adds which process runs which micro-batches.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use crate::observation::Row;

/// The division of a step into groups and micro-batches. A run stores it at its first launch and never changes it.
///
/// A step has `groups` batches, each with its own plan; each batch is cut into `micro_batches` micro-batches. Processes run one
/// or more micro-batches; nothing else depends on the number of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicroBatching {
    /// The number of groups per step.
    pub groups: NonZeroU32,
    /// The number of micro-batches per group.
    pub micro_batches: NonZeroU32,
}

/// One logical micro-batch of every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MicroBatch {
    /// The group of the micro-batch.
    pub group: u32,
    /// The index of the micro-batch in its group.
    pub index: u32,
}

impl Default for MicroBatching {
    /// Returns one group of one micro-batch.
    fn default() -> Self {
        Self { groups: NonZeroU32::MIN, micro_batches: NonZeroU32::MIN }
    }
}

impl MicroBatching {
    /// Returns `groups` groups of `micro_batches` micro-batches each; zero counts as one.
    pub fn new(groups: u32, micro_batches: u32) -> Self {
        let some = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self { groups: some(groups), micro_batches: some(micro_batches) }
    }

    /// Iterates over all micro-batches, in the order of their rows.
    pub fn all(self) -> impl Iterator<Item = MicroBatch> {
        let micro_batches = self.micro_batches.get();
        (0..self.groups.get())
            .flat_map(move |group| (0..micro_batches).map(move |index| MicroBatch { group, index }))
    }

    /// Returns the number of all micro-batches.
    pub fn count(self) -> NonZeroU64 {
        NonZeroU64::from(self.groups).saturating_mul(self.micro_batches.into())
    }

    /// Returns the index of a micro-batch among all micro-batches, one group after the other.
    pub fn number(self, micro_batch: MicroBatch) -> u64 {
        u64::from(micro_batch.group) * u64::from(self.micro_batches.get()) + u64::from(micro_batch.index)
    }

    /// Returns the indices of the micro-batches of a group.
    pub fn of_group(self, group: usize) -> Range<usize> {
        let micro_batches = self.micro_batches.get() as usize;
        group * micro_batches..(group + 1) * micro_batches
    }

    /// Returns whether the micro-batch exists.
    pub fn has(self, micro_batch: MicroBatch) -> bool {
        micro_batch.group < self.groups.get() && micro_batch.index < self.micro_batches.get()
    }

    /// Returns the rows per micro-batch if each group has `batch` rows; `None` if they cannot be cut into equal micro-batches.
    pub fn rows_per_micro_batch(self, batch: u32) -> Option<u32> {
        batch.is_multiple_of(self.micro_batches.get()).then(|| batch / self.micro_batches)
    }

    /// Returns the rows of a step that belong to `micro_batch` if each group has `batch` rows; an empty range for a micro-batch
    /// that does not exist.
    ///
    /// Groups follow each other. Micro-batches are equal; if a batch [cannot be cut evenly](Self::rows_per_micro_batch), the
    /// remaining rows belong to no micro-batch.
    pub fn rows(self, batch: u32, micro_batch: MicroBatch) -> Range<u64> {
        if !self.has(micro_batch) {
            return 0..0;
        }
        let each = u64::from(batch / self.micro_batches);
        let first = u64::from(micro_batch.group) * u64::from(batch) + u64::from(micro_batch.index) * each;
        first..first + each
    }

    /// Returns the number of rows of a whole step.
    pub fn rows_per_step(self, batch: u32) -> u64 {
        u64::from(self.groups.get()) * u64::from(batch)
    }
}

/// The number of rows of each micro-batch of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsPerMicroBatch {
    /// Labelled rows.
    pub labelled: usize,
    /// Unlabelled rows.
    pub unlabelled: usize,
}

/// The rows of a batch that belong to one micro-batch, or to several consecutive micro-batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MicroBatchRows {
    /// The range of labelled rows.
    pub labelled: Range<usize>,
    /// The range of unlabelled rows.
    pub unlabelled: Range<usize>,
}

/// The micro-batches of a step that a process runs, and the rows of its batch.
///
/// A step has groups of `labelled` and `unlabelled` rows, each in several micro-batches. The batch has the rows of the
/// micro-batches that the process runs, one micro-batch after the other. `BatchNorm` normalises one micro-batch at a time.
/// Gradients, losses and statistics are added up over all micro-batches of the step in a fixed order, whichever process runs
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The groups and micro-batches of the whole step.
    pub micro_batching: MicroBatching,
    /// The micro-batches that this process runs, in order.
    pub micro_batches: Vec<MicroBatchRows>,
    /// The number of labelled rows per group.
    pub labelled: usize,
    /// The number of unlabelled rows per group.
    pub unlabelled: usize,
}

impl RowsPerMicroBatch {
    /// Returns the rows of `micro_batches` in a batch of consecutive micro-batches.
    pub fn of(self, micro_batches: Range<usize>) -> MicroBatchRows {
        MicroBatchRows {
            labelled: micro_batches.start * self.labelled..micro_batches.end * self.labelled,
            unlabelled: micro_batches.start * self.unlabelled..micro_batches.end * self.unlabelled,
        }
    }

    /// Returns the micro-batch of a row in a batch of consecutive micro-batches.
    pub fn micro_batch_of(self, row: Row) -> usize {
        match row {
            Row::Labelled(i) => i / self.labelled.max(1),
            Row::Unlabelled(j) => j / self.unlabelled.max(1),
        }
    }
}

impl Partition {
    /// Creates the partition of a step with one group in one micro-batch.
    pub fn whole(labelled: usize, unlabelled: usize) -> Self {
        Self::equal(MicroBatching::default(), RowsPerMicroBatch { labelled, unlabelled }, 1)
    }

    /// Creates the partition of a batch with `local` equal micro-batches of a step.
    pub fn equal(micro_batching: MicroBatching, rows: RowsPerMicroBatch, local: usize) -> Self {
        let group = rows.of(micro_batching.of_group(0));
        Self {
            micro_batching,
            micro_batches: (0..local).map(|micro_batch| rows.of(micro_batch..micro_batch + 1)).collect(),
            labelled: group.labelled.end,
            unlabelled: group.unlabelled.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_micro_batches_tile_the_step(groups in 1_u32..9, micro_batches in 1_u32..9, each in 0_u32..20) {
            let micro_batching = MicroBatching {
                groups: NonZeroU32::new(groups).unwrap(),
                micro_batches: NonZeroU32::new(micro_batches).unwrap(),
            };
            let batch = micro_batches * each;
            prop_assert_eq!(micro_batching.rows_per_micro_batch(batch), Some(each));
            let (mut next, mut number) = (0, 0);
            for micro_batch in micro_batching.all() {
                let rows = micro_batching.rows(batch, micro_batch);
                prop_assert_eq!((rows.start, micro_batching.number(micro_batch)), (next, number));
                prop_assert_eq!(rows.end - rows.start, u64::from(each));
                next = rows.end;
                number += 1;
            }
            prop_assert_eq!((next, number), (micro_batching.rows_per_step(batch), micro_batching.count().get()));
        }

        #[test]
        fn a_batch_that_does_not_divide_has_no_equal_micro_batches(micro_batches in 2_u32..99, each in 0_u32..99, rest in 1_u32..98) {
            prop_assume!(rest < micro_batches);
            let micro_batching = MicroBatching { micro_batches: NonZeroU32::new(micro_batches).unwrap(), ..MicroBatching::default() };
            prop_assert_eq!(micro_batching.rows_per_micro_batch(micro_batches * each + rest), None);
        }
    }

    #[test]
    fn a_micro_batch_that_does_not_exist_has_no_rows() {
        let micro_batching = MicroBatching::default();
        assert_eq!(micro_batching.rows(64, MicroBatch { group: 0, index: 0 }), 0..64);
        assert!(micro_batching.rows(64, MicroBatch { group: 1, index: 0 }).is_empty());
        assert!(micro_batching.rows(64, MicroBatch { group: 0, index: 1 }).is_empty());
    }

    #[test]
    fn the_largest_layout_does_not_overflow() {
        let micro_batching = MicroBatching { groups: NonZeroU32::MAX, micro_batches: NonZeroU32::MAX };
        let last = MicroBatch { group: u32::MAX - 1, index: u32::MAX - 1 };
        assert_eq!(micro_batching.rows(u32::MAX, last).end, micro_batching.rows_per_step(u32::MAX));
        assert_eq!(micro_batching.number(last), micro_batching.count().get() - 1);
    }

    #[test]
    fn rows_know_their_micro_batch() {
        let rows = RowsPerMicroBatch { labelled: 2, unlabelled: 3 };
        assert_eq!(rows.of(1..3), MicroBatchRows { labelled: 2..6, unlabelled: 3..9 });
        for micro_batch in 0..4 {
            let MicroBatchRows { labelled, unlabelled } = rows.of(micro_batch..micro_batch + 1);
            assert!(labelled.map(Row::Labelled).all(|row| rows.micro_batch_of(row) == micro_batch));
            assert!(unlabelled.map(Row::Unlabelled).all(|row| rows.micro_batch_of(row) == micro_batch));
        }
        assert_eq!(RowsPerMicroBatch { unlabelled: 0, ..rows }.micro_batch_of(Row::Unlabelled(0)), 0);
    }

    #[test]
    fn equal_micro_batches_have_the_rows_of_their_groups() {
        let rows = RowsPerMicroBatch { labelled: 2, unlabelled: 3 };
        let partition = Partition::equal(MicroBatching::new(2, 4), rows, 2);
        assert_eq!((partition.labelled, partition.unlabelled), (8, 12));
        assert_eq!(partition.micro_batches, [rows.of(0..1), rows.of(1..2)]);
        assert_eq!(
            Partition::whole(8, 16).micro_batches,
            [MicroBatchRows { labelled: 0..8, unlabelled: 0..16 }]
        );
    }
}
