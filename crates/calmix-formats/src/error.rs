//! The error of this crate: what is wrong with a file, where, and what to try next.
//!
//! A function that reads bytes without knowing their file returns a [`FormatProblem`]. It does not implement `Error`, so the
//! compiler makes the caller add the file before the error can reach a user.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use calmix_io::error::{ErrorKind, FileError, FileProblem};
use calmix_io::redacted::redacted;
use calmix_io::shown::shown;
use calmix_io::transient::{is_transient, is_wrong_path};

/// A file or folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", shown(redacted(&format!("{}{}: {problem}{}", .path.display(), in_place(.place.as_deref()), and_next(.hint.as_deref())))))]
pub struct FormatError {
    /// The file or folder.
    pub path: PathBuf,
    /// The location in the file: a line, a byte, a member, a sample.
    pub place: Option<String>,
    /// What is wrong.
    pub problem: FormatProblem,
    /// What to try next.
    pub hint: Option<String>,
}

/// What can be wrong with a file or its bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum FormatProblem {
    /// The operating system could not read or write.
    Io(io::Error),
    /// The bytes violate their format.
    Format(String),
    /// Exceeds the limit for untrusted input.
    Limit(String),
    /// The bytes differ from the prepared ones.
    Changed(String),
    /// Labels, counts or names that contradict each other or the request.
    Content(String),
    /// The input is ambiguous: the user has to choose a reading.
    Ambiguous {
        /// The ambiguity.
        what: String,
        /// The readings, each with the option that selects it.
        readings: Vec<String>,
    },
}

impl fmt::Display for FormatProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format(what) | Self::Limit(what) | Self::Changed(what) | Self::Content(what) => {
                f.write_str(what)
            }
            Self::Ambiguous { what, readings } => write!(f, "{what}; {}", readings.join("; ")),
        }
    }
}

impl From<io::Error> for FormatProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FileError> for FormatError {
    fn from(error: FileError) -> Self {
        let problem = match error.problem {
            FileProblem::Io(error) => FormatProblem::Io(error),
            FileProblem::Limit(what) => FormatProblem::Limit(what),
            FileProblem::Changed(what) => FormatProblem::Changed(what),
            FileProblem::Content(what) => FormatProblem::Content(what),
            problem => FormatProblem::Format(problem.to_string()),
        };
        Self {
            path: error.path,
            place: error.place.map(String::from),
            problem,
            hint: error.hint.map(String::from),
        }
    }
}

impl FormatError {
    /// Returns a problem with `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<FormatProblem>) -> Self {
        Self { path: path.as_ref().to_owned(), place: None, problem: problem.into(), hint: None }
    }

    /// Returns an error about bytes that violate their format.
    pub fn format(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FormatProblem::Format(what.into()))
    }

    /// Returns an error about something larger than its limit.
    pub fn limit(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FormatProblem::Limit(what.into()))
    }

    /// Returns an error about bytes that differ from the written ones.
    pub fn changed(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FormatProblem::Changed(what.into()))
    }

    /// Returns an error about counts, names or labels that contradict each other or the request.
    pub fn content(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FormatProblem::Content(what.into()))
    }

    /// Adds the location in the file.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.place = Some(at.into());
        self
    }

    /// Adds what to try next.
    #[must_use]
    pub fn hint(mut self, next: impl Into<String>) -> Self {
        self.hint = Some(next.into());
        self
    }

    /// Returns whether the same call may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Transient
    }

    /// Returns whether the device, the network or permissions prevented reading. The content of the file may then be intact.
    pub fn is_storage_failure(&self) -> bool {
        use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        let is_missing =
            |error: &io::Error| matches!(error.kind(), NotFound | NotADirectory | InvalidFilename);
        matches!(&self.problem, FormatProblem::Io(error) if !is_missing(error))
    }

    /// Classifies the error: an unusable file is a mistake, unless the storage failed.
    pub fn kind(&self) -> ErrorKind {
        match &self.problem {
            FormatProblem::Io(error) if is_transient(error) => ErrorKind::Transient,
            FormatProblem::Io(error) if !is_wrong_path(error) => ErrorKind::Failure,
            _ => ErrorKind::Mistake,
        }
    }
}

fn in_place(place: Option<&str>) -> String {
    place.map(|place| format!(", {place}")).unwrap_or_default()
}

fn and_next(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_not_a_storage_failure() {
        let is_storage_failure =
            |number| FormatError::new("a", io::Error::from_raw_os_error(number)).is_storage_failure();
        // ENOENT, ENOTDIR; EIO, EACCES, ESTALE, EMFILE.
        assert_eq!([2, 20].map(is_storage_failure), [false; 2]);
        assert_eq!([5, 13, 116, 24].map(is_storage_failure), [true; 4]);
        assert!(!FormatError::format("a", "no image").is_storage_failure());
    }

    #[test]
    fn the_sentence_names_file_place_problem_and_next_step() {
        let problem = "expected 3073 bytes, found 12";
        let error =
            FormatError::format("train.bin", problem).at("byte 6146").hint("download the archive again");
        assert_eq!(
            error.to_string(),
            "train.bin, byte 6146: expected 3073 bytes, found 12; download the archive again"
        );
    }
}
