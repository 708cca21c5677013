//! The error of this crate: of measuring predictions, of statistics, and of fitting, loading or applying a calibrator.

use std::{error, fmt};

/// A problem with predictions, with the arguments of a statistic, or with the parameters of a calibrator.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MetricsError {
    /// There are no samples to fit on.
    NoSamples,
    /// Two columns of one table have different lengths.
    Length {
        /// The column, in the plural.
        what: &'static str,
        /// The number that is needed.
        expected: usize,
        /// The number that was given.
        got: usize,
    },
    /// A label names a class that does not exist.
    Label {
        /// The row, from zero.
        row: usize,
        /// The label of the row.
        label: u32,
        /// The number of classes.
        classes: usize,
    },
    /// A logit or a probability is out of its range.
    Entry {
        /// `logit` or `probability`.
        what: &'static str,
        /// The row, from zero.
        row: usize,
        /// The class, from zero.
        class: usize,
        /// The invalid value.
        value: f64,
        /// The valid range, in words.
        allowed: &'static str,
    },
    /// A number of a column is out of its range.
    Value {
        /// The name of the column, such as "the weight of sample".
        what: &'static str,
        /// The position in the column, from zero.
        index: usize,
        /// The invalid number.
        value: f64,
        /// The valid range, in words.
        allowed: &'static str,
    },
    /// A single number (a temperature, a level, a total) is out of its range.
    Parameter {
        /// The name of the parameter.
        what: &'static str,
        /// The invalid number.
        value: f64,
        /// The valid range, in words.
        allowed: &'static str,
    },
    /// A calibrator was fitted for another number of classes.
    Classes {
        /// The number of classes of the calibrator.
        expected: usize,
        /// The number of logits per row.
        got: usize,
    },
    /// There are too few folds or samples: every fold needs a sample, and so does its complement.
    Folds {
        /// The requested number of folds.
        folds: usize,
        /// The number of samples.
        samples: usize,
    },
    /// Fewer samples than the statistic needs.
    TooFew {
        /// The smallest sufficient number of samples.
        needed: usize,
        /// The number of samples that was given.
        got: usize,
    },
    /// The knots of an isotonic calibrator do not describe a finite non-decreasing function.
    Knots,
    /// The caller requested a stop.
    Stopped,
}

impl fmt::Display for MetricsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => f.write_str("a calibrator needs at least one sample of positive weight"),
            Self::Length { what, expected, got } => write!(f, "there are {got} {what}, expected {expected}"),
            Self::Label { row, label, classes } => {
                write!(f, "row {row} has label {label}, but there are {classes} classes")
            }
            Self::Entry { what, row, class, value, allowed } => {
                write!(f, "the {what} of class {class} in row {row} is {value}; it must be {allowed}")
            }
            Self::Value { what, index, value, allowed } => {
                write!(f, "{what} {index} is {value}; it must be {allowed}")
            }
            Self::Parameter { what, value, allowed } => {
                write!(f, "the {what} is {value}; it must be {allowed}")
            }
            Self::Classes { expected, got } => {
                write!(f, "the calibrator is for {expected} classes, but the rows have {got}")
            }
            Self::Folds { folds, samples } => write!(
                f,
                "cannot split {samples} samples into {folds} folds: use at least 2 folds with a sample in each"
            ),
            Self::TooFew { needed, got } => write!(f, "at least {needed} samples are needed, got {got}"),
            Self::Knots => f.write_str(
                "the knots must strictly increase, their values must not decrease, and both must be finite",
            ),
            Self::Stopped => f.write_str("stopped before the calibrator was fitted"),
        }
    }
}

impl error::Error for MetricsError {}
