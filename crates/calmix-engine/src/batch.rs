//! The batch of a step, borrowed from the loader.

use calmix_core::sharding::{Partition, ShardRows};

use crate::error::EngineError;

/// One step's samples. Pixels are u8, row by row, each R, G, B from the top left.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The step, for messages.
    pub step: u64,
    /// The labelled rows.
    pub labelled: LabelledRows<'a>,
    /// The unlabelled rows; none in supervised training.
    pub unlabelled: UnlabelledRows<'a>,
    /// Which rows are in which shard.
    pub partition: &'a Partition,
}

/// Labelled samples, weakly augmented.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabelledRows<'a> {
    /// Which samples.
    pub ids: &'a [u64],
    /// Their classes.
    pub labels: &'a [u32],
    /// Their weak views.
    pub pixels: &'a [u8],
}

/// Unlabelled samples in two views.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnlabelledRows<'a> {
    /// Which samples.
    pub ids: &'a [u64],
    /// Their weak views.
    pub weak: &'a [u8],
    /// Their strong views.
    pub strong: &'a [u8],
}

impl Batch<'_> {
    /// Labelled and unlabelled rows.
    pub(crate) fn rows(&self) -> (usize, usize) {
        (self.labelled.ids.len(), self.unlabelled.ids.len())
    }

    pub(crate) fn check(&self, bytes: usize, classes: usize) -> Result<(), EngineError> {
        let (labelled, unlabelled) = (&self.labelled, &self.unlabelled);
        let counts = [
            ("labelled", labelled.ids.len(), "labels", labelled.labels.len(), 1),
            ("labelled", labelled.ids.len(), "bytes of pixels", labelled.pixels.len(), bytes),
            ("unlabelled", unlabelled.ids.len(), "bytes of weak views", unlabelled.weak.len(), bytes),
            ("unlabelled", unlabelled.ids.len(), "bytes of strong views", unlabelled.strong.len(), bytes),
        ];
        for (batch, rows, what, got, each) in counts {
            if rows * each != got {
                return Err(EngineError::Batch { batch, rows, what, got });
            }
        }
        if labelled.ids.is_empty() {
            return Err(EngineError::NothingLabelled);
        }
        self.check_shards()?;
        let stray = labelled.labels.iter().enumerate().find(|&(_, &label)| label as usize >= classes);
        stray.map_or(Ok(()), |(row, &label)| Err(EngineError::Label { row, label, classes }))
    }

    /// Checks that the shards follow each other and make up the batch.
    fn check_shards(&self) -> Result<(), EngineError> {
        let misfit = |sentence: &str| Err(EngineError::Misfit(sentence.to_owned()));
        let Partition { sharding, shards, labelled, .. } = self.partition;
        let mut at = (0, 0);
        for ShardRows { labelled, unlabelled } in shards {
            if (labelled.start, unlabelled.start) != at || labelled.is_empty() {
                return misfit("the shards of a batch do not follow each other, or one has no labelled row");
            }
            at = (labelled.end, unlabelled.end);
        }
        if at != self.rows() {
            return misfit("the shards do not cover the batch");
        }
        if sharding.count().get() < shards.len() as u64 || *labelled == 0 {
            return misfit("the step has fewer shards, groups or rows than this process runs");
        }
        Ok(())
    }
}
