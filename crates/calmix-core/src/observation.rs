//! The network's outputs for a batch, and everything else that its plan is made from.

use std::ops::Range;

use crate::error::CoreError;
use crate::lanes::all_finite;
use crate::margin::margin;
use crate::matrix::Matrix;
use crate::mixup::pair::Space;
use crate::pseudo::Sums;

/// One of the two batches of a step: row i has the network's outputs for the weak view of sample `ids[i]`.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The ids of the samples in the whole dataset: an image that is both labelled and unlabelled has one id.
    pub ids: &'a [u64],
    /// Rows of C logits.
    pub logits: Matrix<'a>,
    /// The vectors on which similarity is measured: pooled features, pixels or logits; of width zero if it is not needed.
    pub features: Matrix<'a>,
}

/// The network's outputs for a labelled and an unlabelled batch.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// D_L, the labelled batch; it may be empty.
    pub labelled: Rows<'a>,
    /// y, one label per labelled row.
    pub labels: &'a [u32],
    /// D_U, the unlabelled batch; empty in supervised training.
    pub unlabelled: Rows<'a>,
}

/// Everything that one group's plan is made from: the network's outputs, the state of the samples, and sums over all groups.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The network's outputs for the batch.
    pub seen: Observation<'a>,
    /// The margins of the rows, including this visit; `None` if pairs are not guided by them, or before they are averaged.
    pub margins: Option<RowMargins<'a>>,
    /// Sums over all shards of the step.
    pub sums: &'a Sums,
}

/// The average margins of the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub struct RowMargins<'a> {
    /// AUM of each labelled row.
    pub aum: &'a [f64],
    /// APM of each unlabelled row at its pseudo-label.
    pub apm: &'a [f64],
}

impl<'a> Rows<'a> {
    /// Returns some of these rows.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Self {
        let Self { ids, logits, features } = self;
        let ids = ids.get(rows.clone()).unwrap_or_default();
        Self { ids, logits: logits.range(rows.clone()), features: features.range(rows) }
    }

    /// Returns row i in the space in which similarity is measured.
    pub fn vector(&self, space: Space, i: usize) -> &'a [f32] {
        match space {
            Space::Feature | Space::Pixel => self.features.row(i),
            Space::Logit => self.logits.row(i),
        }
    }

    fn check(&self, batch: &'static str) -> Result<(), CoreError> {
        for (what, matrix) in [("logits", self.logits), ("features", self.features)] {
            let (ids, got) = (self.ids.len(), matrix.rows());
            if ids != got {
                return Err(CoreError::Length { batch, what, ids, got });
            }
            if let Some(row) = matrix.iter().position(|row| !all_finite(row)) {
                return Err(CoreError::NotFinite { batch, what, row, sample: self.ids[row] });
            }
        }
        Ok(())
    }
}

impl Known<'_> {
    /// Checks the observation, and that there is a margin for every row if there are margins.
    ///
    /// # Errors
    /// Returns the first row or column that is inconsistent.
    pub fn check(&self) -> Result<(), CoreError> {
        self.seen.check()?;
        let Some(RowMargins { aum, apm }) = self.margins else { return Ok(()) };
        let Observation { labelled, unlabelled, .. } = &self.seen;
        for (batch, rows, margins) in [("labelled", labelled, aum), ("unlabelled", unlabelled, apm)] {
            let (ids, got) = (rows.ids.len(), margins.len());
            if ids != got {
                return Err(CoreError::Length { batch, what: "margins", ids, got });
            }
        }
        Ok(())
    }
}

impl Observation<'_> {
    /// Returns C, the number of classes.
    pub fn classes(&self) -> usize {
        self.labelled.logits.width()
    }

    /// Computes the margin of each labelled row at its label.
    pub fn margins(&self) -> Vec<f64> {
        let rows = self.labelled.logits.iter().zip(self.labels);
        rows.map(|(logits, &label)| margin(logits, label as usize)).collect()
    }

    /// Checks that all columns agree, labels are classes and numbers are finite.
    ///
    /// # Errors
    /// Returns the first row that is inconsistent.
    pub fn check(&self) -> Result<(), CoreError> {
        self.labelled.check("labelled")?;
        self.unlabelled.check("unlabelled")?;
        let (labelled, unlabelled) = (self.classes(), self.unlabelled.logits.width());
        if labelled != unlabelled {
            return Err(CoreError::BatchClasses { labelled, unlabelled });
        }
        let widths = (self.labelled.features.width(), self.unlabelled.features.width());
        if widths.0 != widths.1 {
            return Err(CoreError::Widths { labelled: widths.0, unlabelled: widths.1 });
        }
        let (ids, got) = (self.labelled.ids.len(), self.labels.len());
        if ids != got {
            return Err(CoreError::Length { batch: "labelled", what: "labels", ids, got });
        }
        let stray = self.labels.iter().position(|&label| label as usize >= labelled);
        stray.map_or(Ok(()), |row| Err(CoreError::Label { row, label: self.labels[row], classes: labelled }))
    }
}
