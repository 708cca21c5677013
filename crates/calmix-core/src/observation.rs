//! The input of a plan: the network's outputs for a batch, the margins of its samples, and sums over the step.

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

/// A row of one of the two batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// A row of the labelled batch.
    Labelled(usize),
    /// A row of the unlabelled batch, weak view.
    Unlabelled(usize),
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

/// The input of one group's plan: the network's outputs, the state of the samples, and sums over all groups.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// The network's outputs for the batch.
    pub observation: Observation<'a>,
    /// The margins of the rows, including this visit; `None` if pairs are not guided by them, or before they are averaged.
    pub margins: Option<RowMargins<'a>>,
    /// Sums over all micro-batches of the step.
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
    /// Returns the rows of a range.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Self {
        let Self { ids, logits, features } = self;
        let ids = ids.get(rows.clone()).unwrap_or_default();
        Self { ids, logits: logits.range(rows.clone()), features: features.range(rows) }
    }

    /// Returns the vector of row i in this space.
    pub fn vector(&self, space: Space, i: usize) -> &'a [f32] {
        match space {
            Space::Feature | Space::Pixel => self.features.row(i),
            Space::Logit => self.logits.row(i),
        }
    }

    fn check_length(&self, batch: &'static str, what: &'static str, got: usize) -> Result<(), CoreError> {
        let ids = self.ids.len();
        if ids == got { Ok(()) } else { Err(CoreError::Length { batch, what, ids, got }) }
    }

    fn check(&self, batch: &'static str) -> Result<(), CoreError> {
        for (what, matrix) in [("logits", self.logits), ("features", self.features)] {
            self.check_length(batch, what, matrix.rows())?;
            if let Some(row) = matrix.iter().position(|row| !all_finite(row)) {
                return Err(CoreError::NotFinite { batch, what, row, sample: self.ids[row] });
            }
        }
        Ok(())
    }
}

impl PlanInput<'_> {
    /// Checks the observation, and that there is a margin for every row if there are margins.
    ///
    /// # Errors
    /// Returns the first row or column that is inconsistent.
    pub fn check(&self) -> Result<(), CoreError> {
        self.observation.check()?;
        let Some(RowMargins { aum, apm }) = self.margins else { return Ok(()) };
        let Observation { labelled, unlabelled, .. } = &self.observation;
        for (batch, rows, margins) in [("labelled", labelled, aum), ("unlabelled", unlabelled, apm)] {
            rows.check_length(batch, "margins", margins.len())?;
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
        let Self { labelled, labels, unlabelled } = self;
        for (what, a, b) in [
            ("classes", labelled.logits, unlabelled.logits),
            ("features per row", labelled.features, unlabelled.features),
        ] {
            if a.width() != b.width() {
                return Err(CoreError::Widths { what, labelled: a.width(), unlabelled: b.width() });
            }
        }
        labelled.check_length("labelled", "labels", labels.len())?;
        let classes = self.classes();
        let invalid = labels.iter().position(|&label| label as usize >= classes);
        invalid.map_or(Ok(()), |row| Err(CoreError::Label { row, label: labels[row], classes }))
    }
}
