//! How a step is cut into shards, and which of them this process runs.

use std::ops::Range;

use crate::batch::Batch;
use crate::error::EngineError;

/// How a step is cut into shards, and which of them this process runs.
///
/// A step has `groups` batches of `labelled` and `unlabelled` rows, each in several shards. The [`Batch`] has the rows
/// of the shards that this process runs, one shard after the other. BatchNorm sees one shard at a time. Gradients,
/// losses and statistics are added up over all shards of the step in a fixed order, whichever process runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The shards that this process runs, in order.
    pub shards: Vec<ShardRows>,
    /// Shards of the whole step.
    pub all: usize,
    /// Groups of the whole step.
    pub groups: usize,
    /// Labelled rows of a group.
    pub labelled: usize,
    /// Unlabelled rows of a group.
    pub unlabelled: usize,
}

/// The rows of a batch that make up one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRows {
    /// Of the labelled rows.
    pub labelled: Range<usize>,
    /// Of the unlabelled rows.
    pub unlabelled: Range<usize>,
}

impl Partition {
    /// One group in one shard: all of a batch.
    pub fn whole(labelled: usize, unlabelled: usize) -> Self {
        let shard = ShardRows { labelled: 0..labelled, unlabelled: 0..unlabelled };
        Self { shards: vec![shard], all: 1, groups: 1, labelled, unlabelled }
    }

    /// Checks that the shards follow each other and make up the batch.
    pub(crate) fn check(&self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let misfit = |sentence: &str| Err(EngineError::Misfit(sentence.to_owned()));
        let mut at = (0, 0);
        for ShardRows { labelled, unlabelled } in &self.shards {
            if (labelled.start, unlabelled.start) != at || labelled.is_empty() {
                return misfit("shards of a batch that do not follow each other, or have no labelled row");
            }
            at = (labelled.end, unlabelled.end);
        }
        if at != batch.rows() {
            return misfit("shards that are not all of the batch");
        }
        if self.all < self.shards.len() || self.groups == 0 || self.labelled == 0 {
            return misfit("a step with fewer shards, groups or rows than are run here");
        }
        Ok(())
    }
}

impl ShardRows {
    /// Images of its batch: one view of each labelled row, two of each unlabelled one.
    pub(crate) fn images(&self) -> usize {
        self.labelled.len() + 2 * self.unlabelled.len()
    }
}
