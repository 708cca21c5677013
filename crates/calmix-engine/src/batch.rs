//! The batch of a step, borrowed from the loader.

use calmix_core::micro_batching::{MicroBatchRows, Partition};

use crate::error::EngineError;

/// The samples of one step. Pixels are u8, row by row from the top left, each R, G, B.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The step, for messages.
    pub step: u64,
    pub labelled: LabelledRows<'a>,
    /// The unlabelled rows; empty in supervised training.
    pub unlabelled: UnlabelledRows<'a>,
    /// The rows of each micro-batch.
    pub partition: &'a Partition,
}

/// Labelled samples, weakly augmented.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabelledRows<'a> {
    pub ids: &'a [u64],
    pub labels: &'a [u32],
    pub pixels: &'a [u8],
}

/// Unlabelled samples in two views.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnlabelledRows<'a> {
    pub ids: &'a [u64],
    pub weak: &'a [u8],
    pub strong: &'a [u8],
}

impl Batch<'_> {
    /// Returns the numbers of labelled and unlabelled rows.
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
        self.check_micro_batches()?;
        let stray = labelled.labels.iter().enumerate().find(|&(_, &label)| label as usize >= classes);
        stray.map_or(Ok(()), |(row, &label)| Err(EngineError::Label { row, label, classes }))
    }

    /// Checks that the micro-batches are consecutive and cover the batch.
    fn check_micro_batches(&self) -> Result<(), EngineError> {
        let misfit = |sentence: &str| Err(EngineError::Misfit(sentence.to_owned()));
        let Partition { micro_batching, micro_batches, labelled, .. } = self.partition;
        let mut at = (0, 0);
        for MicroBatchRows { labelled, unlabelled } in micro_batches {
            if (labelled.start, unlabelled.start) != at || labelled.is_empty() {
                return misfit(
                    "the micro-batches of a batch do not follow each other, or one has no labelled row",
                );
            }
            at = (labelled.end, unlabelled.end);
        }
        if at != self.rows() {
            return misfit("the micro-batches do not cover the batch");
        }
        if micro_batching.count().get() < micro_batches.len() as u64 || *labelled == 0 {
            return misfit("the step has fewer micro-batches, groups or rows than this process runs");
        }
        Ok(())
    }
}
