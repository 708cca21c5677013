//! What a step is trained on, lent by whoever made it, and how it is cut.

use std::ops::Range;

use crate::error::EngineError;
use crate::images::Size;

/// One step's samples. Pixels are u8, row by row, each R, G, B from the top left.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The step, for messages.
    pub step: u64,
    /// The labelled rows.
    pub labelled: Labelled<'a>,
    /// The unlabelled rows; none in supervised training.
    pub unlabelled: Unlabelled<'a>,
}

/// Labelled samples, weakly augmented.
#[derive(Debug, Clone, Copy, Default)]
pub struct Labelled<'a> {
    /// Which samples.
    pub ids: &'a [u64],
    /// Their classes.
    pub labels: &'a [u32],
    /// Their weak views.
    pub pixels: &'a [u8],
}

/// Unlabelled samples in two views.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlabelled<'a> {
    /// Which samples.
    pub ids: &'a [u64],
    /// Their weak views.
    pub weak: &'a [u8],
    /// Their strong views.
    pub strong: &'a [u8],
}

/// How a step is cut into parts, and which of them are run here.
///
/// A step has `groups` batches of `labelled` and `unlabelled` rows, each in several parts. The [`Batch`] has the rows
/// of the parts that this process runs, one part after the other. BatchNorm sees one part at a time. Gradients, losses
/// and statistics are added up over all parts of the step in a fixed order, whoever runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The parts that are run here, in order.
    pub parts: Vec<Part>,
    /// Parts of the whole step.
    pub all: usize,
    /// Groups of the whole step.
    pub groups: usize,
    /// Labelled rows of a group.
    pub labelled: usize,
    /// Unlabelled rows of a group.
    pub unlabelled: usize,
}

/// The rows of a batch that make up one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Of the labelled rows.
    pub labelled: Range<usize>,
    /// Of the unlabelled rows.
    pub unlabelled: Range<usize>,
}

impl Cut {
    /// One group in one part: all of a batch.
    pub fn whole(batch: &Batch<'_>) -> Self {
        let (labelled, unlabelled) = batch.rows();
        let part = Part { labelled: 0..labelled, unlabelled: 0..unlabelled };
        Self { parts: vec![part], all: 1, groups: 1, labelled, unlabelled }
    }

    /// Checks that the parts follow each other and make up the batch.
    fn check(&self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let misfit = |sentence: &str| Err(EngineError::Misfit(sentence.to_owned()));
        let mut at = (0, 0);
        for Part { labelled, unlabelled } in &self.parts {
            if (labelled.start, unlabelled.start) != at || labelled.is_empty() {
                return misfit("parts of a batch that do not follow each other, or have no labelled row");
            }
            at = (labelled.end, unlabelled.end);
        }
        if at != batch.rows() {
            return misfit("parts that are not all of the batch");
        }
        if self.all < self.parts.len() || self.groups == 0 || self.labelled == 0 {
            return misfit("a step with fewer parts, groups or rows than are run here");
        }
        Ok(())
    }
}

impl Batch<'_> {
    /// Labelled and unlabelled rows.
    pub(crate) fn rows(&self) -> (usize, usize) {
        (self.labelled.ids.len(), self.unlabelled.ids.len())
    }

    pub(crate) fn check(&self, cut: &Cut, size: Size, classes: usize) -> Result<(), EngineError> {
        let bytes = size.bytes();
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
        cut.check(self)?;
        let stray = labelled.labels.iter().enumerate().find(|&(_, &label)| label as usize >= classes);
        stray.map_or(Ok(()), |(row, &label)| Err(EngineError::Label { row, label, classes }))
    }
}
