//! The answers of a review, wherever they are from.

use std::fmt;
use std::path::PathBuf;

use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::drawn::Drawn;

/// A review.
#[derive(Debug)]
pub(crate) struct ReviewFile {
    pub(crate) path: PathBuf,
    /// The part of the file that one of several annotators made, to follow the path; empty for the whole file.
    pub(crate) part: String,
    pub(crate) rows: Vec<ReviewRow>,
}

/// A row of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewRow {
    pub(crate) place: RowPlace,
    /// The name of the sample in the list of labels.
    pub(crate) file: String,
    /// The answer; `None` if the row was skipped or not reached.
    pub(crate) label: Option<String>,
    /// How the row was drawn; `None` if the field is empty.
    pub(crate) drawn: Option<Drawn>,
}

/// The place of a row in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowPlace {
    /// A line, counted from 1.
    Line(u64),
    /// The id of a task of Label Studio.
    Task(u64),
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Task(id) => write!(f, "task {id}"),
        }
    }
}

impl ReviewFile {
    /// Returns the name of the review in messages.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.path.display(), self.part)
    }
}

impl ReviewRow {
    /// Returns whether the reviewer answered or skipped it.
    pub(crate) fn is_reviewed(&self) -> bool {
        self.label.is_some() || self.drawn == Some(Drawn::Skipped)
    }
}

/// Refuses a label with spaces around it, which would be a class of its own.
pub(super) fn check_spaces(
    label: &str,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<(), FormatError> {
    if label.trim() == label {
        return Ok(());
    }
    let problem = format!("the label {label:?} has spaces around it");
    Err(at(FormatProblem::Content(problem)).hint("remove them"))
}
