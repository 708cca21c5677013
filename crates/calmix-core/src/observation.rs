//! What the network said about a batch, and what else is known of it when its plan is made.

use std::ops::Range;
use std::{error, fmt};

use crate::lanes::all_finite;
use crate::margin::margin;
use crate::matrix::Matrix;
use crate::pair::Space;
use crate::pseudo::Sums;

/// One of the two batches of a step: row i is sample `ids[i]` as its weak view came out of the network.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Which samples: ids of the whole dataset, so that a labelled image and its occurrence in the unlabelled
    /// set share one.
    pub ids: &'a [u64],
    /// Rows of C logits.
    pub logits: Matrix<'a>,
    /// Rows of whatever similarity is measured on: pooled features, or pixels. Width zero where nothing is.
    pub features: Matrix<'a>,
}

/// A labelled and an unlabelled batch, seen.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// D_L; empty rows are fine.
    pub labelled: Rows<'a>,
    /// y, one per labelled row.
    pub labels: &'a [u32],
    /// D_U; without rows in supervised training.
    pub unlabelled: Rows<'a>,
}

/// What is known of one group's batch when its plan is made: what the network said, what the samples remember, what
/// all groups share.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// What the network said.
    pub seen: Observation<'a>,
    /// How easy the rows are, this visit included; none where pairs are not guided by it, or not yet.
    pub margins: Option<RowMargins<'a>>,
    /// Sums over all shards of the step.
    pub sums: &'a Sums,
}

/// How easy the rows of a batch are.
#[derive(Debug, Clone, Copy)]
pub struct RowMargins<'a> {
    /// AUM of each labelled row.
    pub aum: &'a [f64],
    /// APM of each unlabelled row at its pseudo-label.
    pub apm: &'a [f64],
}

/// An observation that contradicts itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ObservationError {
    /// A column of another length.
    Length {
        /// Which batch.
        batch: &'static str,
        /// Which column.
        what: &'static str,
        /// Ids there are.
        ids: usize,
        /// Rows there are.
        got: usize,
    },
    /// The two batches have different numbers of classes.
    Classes {
        /// Width of the labelled logits.
        labelled: usize,
        /// Width of the unlabelled logits.
        unlabelled: usize,
    },
    /// The two batches have features of different lengths.
    Widths {
        /// Width of the labelled features.
        labelled: usize,
        /// Width of the unlabelled features.
        unlabelled: usize,
    },
    /// A label that is not a class.
    Label {
        /// The row.
        row: usize,
        /// Its label.
        label: u32,
        /// C.
        classes: usize,
    },
    /// A number that is none, or infinite: taken in, it would stay in the averages for good.
    NotFinite {
        /// Which batch.
        batch: &'static str,
        /// Logits or features.
        what: &'static str,
        /// The row.
        row: usize,
        /// Its sample.
        sample: u64,
    },
}

impl fmt::Display for ObservationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { batch, what, ids, got } => {
                write!(f, "the {batch} batch has {ids} ids but {got} rows of {what}")
            }
            Self::Classes { labelled, unlabelled } => {
                write!(f, "the labelled batch has {labelled} classes, the unlabelled one {unlabelled}")
            }
            Self::Widths { labelled, unlabelled } => {
                write!(f, "labelled features have {labelled} numbers per row, unlabelled ones {unlabelled}")
            }
            Self::Label { row, label, classes } => {
                write!(f, "row {row} has label {label}, but there are {classes} classes")
            }
            Self::NotFinite { batch, what, row, sample } => {
                write!(f, "row {row} of the {batch} batch (sample {sample}) has {what} that are not finite")
            }
        }
    }
}

impl error::Error for ObservationError {}

impl<'a> Rows<'a> {
    /// Some of these rows.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Self {
        let Self { ids, logits, features } = self;
        let ids = ids.get(rows.clone()).unwrap_or_default();
        Self { ids, logits: logits.range(rows.clone()), features: features.range(rows) }
    }

    /// Row i in the space that similarity is measured in.
    pub fn vector(&self, space: Space, i: usize) -> &'a [f32] {
        match space {
            Space::Feature | Space::Pixel => self.features.row(i),
            Space::Logit => self.logits.row(i),
        }
    }

    fn check(&self, batch: &'static str) -> Result<(), ObservationError> {
        for (what, matrix) in [("logits", self.logits), ("features", self.features)] {
            let (ids, got) = (self.ids.len(), matrix.rows());
            if ids != got {
                return Err(ObservationError::Length { batch, what, ids, got });
            }
            if let Some(row) = matrix.iter().position(|row| !all_finite(row)) {
                return Err(ObservationError::NotFinite { batch, what, row, sample: self.ids[row] });
            }
        }
        Ok(())
    }
}

impl Known<'_> {
    /// Checks the observation, and that there is a margin for every row if any.
    ///
    /// # Errors
    /// Names the first row or column that does not fit.
    pub fn check(&self) -> Result<(), ObservationError> {
        self.seen.check()?;
        let Some(RowMargins { aum, apm }) = self.margins else { return Ok(()) };
        let Observation { labelled, unlabelled, .. } = &self.seen;
        for (batch, rows, margins) in [("labelled", labelled, aum), ("unlabelled", unlabelled, apm)] {
            let (ids, got) = (rows.ids.len(), margins.len());
            if ids != got {
                return Err(ObservationError::Length { batch, what: "margins", ids, got });
            }
        }
        Ok(())
    }
}

impl Observation<'_> {
    /// C.
    pub fn classes(&self) -> usize {
        self.labelled.logits.width()
    }

    /// The margin of each labelled row at its label.
    pub fn margins(&self) -> Vec<f64> {
        let rows = self.labelled.logits.iter().zip(self.labels);
        rows.map(|(logits, &label)| margin(logits, label as usize)).collect()
    }

    /// Checks that all columns agree, labels are classes and numbers are finite.
    ///
    /// # Errors
    /// Names the first row that does not.
    pub fn check(&self) -> Result<(), ObservationError> {
        self.labelled.check("labelled")?;
        self.unlabelled.check("unlabelled")?;
        let (labelled, unlabelled) = (self.classes(), self.unlabelled.logits.width());
        if labelled != unlabelled {
            return Err(ObservationError::Classes { labelled, unlabelled });
        }
        let widths = (self.labelled.features.width(), self.unlabelled.features.width());
        if widths.0 != widths.1 {
            return Err(ObservationError::Widths { labelled: widths.0, unlabelled: widths.1 });
        }
        let (ids, got) = (self.labelled.ids.len(), self.labels.len());
        if ids != got {
            return Err(ObservationError::Length { batch: "labelled", what: "labels", ids, got });
        }
        let stray = self.labels.iter().position(|&label| label as usize >= labelled);
        stray.map_or(Ok(()), |row| {
            Err(ObservationError::Label { row, label: self.labels[row], classes: labelled })
        })
    }
}
