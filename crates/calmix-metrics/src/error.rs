//! Why predictions cannot be measured, and why a calibration map could not be fitted, loaded or applied.

use std::{error, fmt};

/// What is wrong with predictions, or with the parameters of a calibration map.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Nothing to fit on.
    NoSamples,
    /// Two columns of one table have different lengths.
    Length {
        /// What there are too few or too many of.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A label names a class that does not exist.
    Label {
        /// The row, from zero.
        row: usize,
        /// Its label.
        label: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// A logit or a probability is not in the range where it means something.
    Entry {
        /// Which of the two.
        what: &'static str,
        /// The row, from zero.
        row: usize,
        /// The class, from zero.
        class: usize,
        /// What stands there.
        value: f32,
        /// What may stand there.
        allowed: &'static str,
    },
    /// A number of a column is not in the range where it means something.
    Value {
        /// What the number is, and of what: "the weight of sample".
        what: &'static str,
        /// Its position, from zero.
        index: usize,
        /// The number.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A number that there is only one of (a temperature, a level, a total) is out of its range.
    Parameter {
        /// Its name.
        what: &'static str,
        /// The number.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A map was fitted for another number of classes.
    Classes {
        /// Classes of the map.
        expected: usize,
        /// Width of the rows.
        got: usize,
    },
    /// Every fold needs a sample, and so does its complement.
    Folds {
        /// Folds asked for.
        folds: usize,
        /// Samples there are.
        samples: usize,
    },
    /// The knots of an isotonic map do not describe a finite non-decreasing function.
    Knots,
}

impl fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => f.write_str("a calibration map needs at least one sample of positive weight"),
            Self::Length { what, expected, got } => write!(f, "{got} {what}, but there must be {expected}"),
            Self::Label { row, label, classes } => {
                write!(f, "row {row} has label {label}, but there are {classes} classes")
            }
            Self::Entry { what, row, class, value, allowed } => {
                write!(f, "the {what} of class {class} in row {row} is {value}, not {allowed}")
            }
            Self::Value { what, index, value, allowed } => {
                write!(f, "{what} {index} is {value}, not {allowed}")
            }
            Self::Parameter { what, value, allowed } => write!(f, "the {what} is {value}, not {allowed}"),
            Self::Classes { expected, got } => {
                write!(f, "the map is for {expected} classes, the rows have {got}")
            }
            Self::Folds { folds, samples } => write!(
                f,
                "{folds} folds of {samples} samples: there must be at least 2 folds and a sample in each"
            ),
            Self::Knots => f.write_str(
                "the knots must strictly increase, their values must not decrease, and both ranges be finite",
            ),
        }
    }
}

impl error::Error for CalibrationError {}
