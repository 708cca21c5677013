//! The error of this crate: values that the caller has to correct.

use std::{error, fmt};

use crate::settings::limit::Limit;

/// A value that a function cannot work with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CoreError {
    /// A sample that is not in the store.
    UnknownSample {
        /// The id of the sample, or its slot.
        sample: u64,
    },
    /// A row whose number of classes differs from the store's.
    Classes {
        /// The number of classes of the store.
        expected: usize,
        /// The number of classes of the row.
        got: usize,
    },
    /// The state lacks what the method needs, because it belongs to another method.
    MissingState {
        /// The missing part, in the plural.
        what: &'static str,
    },
    /// There is not enough memory.
    Memory {
        /// The number of samples.
        samples: usize,
        /// The number of classes.
        classes: usize,
        /// The size of their state, in bytes.
        bytes: u64,
    },
    /// The stored data is not a valid state.
    Damaged {
        /// A description of the damage.
        what: &'static str,
    },
    /// A column whose length differs from the number of ids.
    Length {
        /// The batch: `labelled` or `unlabelled`.
        batch: &'static str,
        /// The column.
        what: &'static str,
        /// The number of ids.
        ids: usize,
        /// The number of rows.
        got: usize,
    },
    /// The two batches have different numbers of classes, or features of different lengths.
    Widths {
        /// `classes` or `features per row`.
        what: &'static str,
        /// The width of the labelled rows.
        labelled: usize,
        /// The width of the unlabelled rows.
        unlabelled: usize,
    },
    /// A label that is not a class.
    Label {
        /// The row.
        row: usize,
        /// The label of the row.
        label: u32,
        /// C, the number of classes.
        classes: usize,
    },
    /// A number is NaN or infinite, which would stay in the averages permanently.
    NotFinite {
        /// The batch: `labelled` or `unlabelled`.
        batch: &'static str,
        /// `logits` or `features`.
        what: &'static str,
        /// The row.
        row: usize,
        /// The id of the row's sample.
        sample: u64,
    },
    /// A slice whose length does not match its shape.
    Shape {
        /// The requested number of rows.
        rows: usize,
        /// The requested width.
        width: usize,
        /// The length of the slice.
        got: usize,
    },
    /// A setting outside its range.
    OutOfRange {
        /// The path of the setting.
        setting: String,
        /// The value that is out of range.
        value: f64,
        /// The range of valid values.
        limit: Limit,
    },
    /// A text that is not one of the words of a choice.
    UnknownWord {
        /// The text that was given.
        found: String,
        /// The valid words, as a phrase for messages.
        expected: &'static str,
    },
}

impl CoreError {
    /// Returns the error with the path of the section before its setting; an empty path adds nothing.
    #[must_use]
    pub fn within(self, section: &str) -> Self {
        match self {
            Self::OutOfRange { setting, value, limit } if !section.is_empty() => {
                Self::OutOfRange { setting: format!("{section}.{setting}"), value, limit }
            }
            other => other,
        }
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSample { sample } => write!(f, "sample {sample} is not in this store"),
            Self::Classes { expected, got } => {
                write!(f, "the store has {expected} classes, but the row has {got}")
            }
            Self::MissingState { what } => {
                write!(f, "this state does not keep {what}: it belongs to another method")
            }
            Self::Memory { samples, classes, bytes } => {
                write!(
                    f,
                    "the state of {samples} samples in {classes} classes takes {} MB, more than the available memory",
                    bytes >> 20
                )
            }
            Self::Damaged { what } => write!(f, "damaged state: {what}"),
            Self::Length { batch, what, ids, got } => {
                write!(f, "the {batch} batch has {ids} ids but {got} rows of {what}")
            }
            Self::Widths { what, labelled, unlabelled } => {
                write!(
                    f,
                    "the labelled batch has {labelled} {what}, but the unlabelled batch has {unlabelled}"
                )
            }
            Self::Label { row, label, classes } => {
                write!(f, "row {row} has label {label}, but there are {classes} classes")
            }
            Self::NotFinite { batch, what, row, sample } => {
                write!(f, "row {row} of the {batch} batch (sample {sample}) has {what} that are not finite")
            }
            Self::Shape { rows, width, got } => {
                let needed = rows.saturating_mul(*width);
                write!(f, "{rows} rows of {width} need {needed} numbers, got {got}")
            }
            Self::OutOfRange { setting, value, limit } => {
                write!(f, "{setting} = {value} is out of range: expected a number{limit}")
            }
            Self::UnknownWord { found, expected } => {
                write!(f, "unknown word `{found}`; expected {expected}")
            }
        }
    }
}

impl error::Error for CoreError {}
