//! The error of this crate: what is wrong with a dataset, where, and what to try next.

use std::io;
use std::path::{Path, PathBuf};

use calmix_io::error::{ErrorKind, FileError, FileProblem};
use calmix_io::shown::shown;
use calmix_io::transient::{is_transient, is_wrong_path};

/// A file or folder that cannot be used.
///
/// Its sentence names the path, the place in it and the problem, and ends with what to try next.
#[derive(Debug, thiserror::Error)]
#[error("{}", shown(format!("{}{}: {problem}{}", .path.display(), in_place(.place.as_deref()), and_next(.hint.as_deref()))))]
pub struct DataError {
    /// The file or folder.
    pub path: PathBuf,
    /// Where in it: a line, a byte, a member, a sample.
    pub place: Option<String>,
    /// What is wrong.
    #[source]
    pub problem: DataProblem,
    /// What to try next.
    pub hint: Option<String>,
}

/// What can be wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataProblem {
    /// The system could not read or write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes violate their format.
    #[error("{0}")]
    Format(String),
    /// Larger than what is accepted from untrusted input.
    #[error("{0}")]
    Limit(String),
    /// The bytes are not the ones that were prepared.
    #[error("{0}")]
    Changed(String),
    /// Labels, counts or names that contradict each other or the request.
    #[error("{0}")]
    Content(String),
    /// More than one reading is possible: the user has to choose one.
    #[error("{what}; {}", .readings.join("; "))]
    Ambiguous {
        /// What was found.
        what: String,
        /// The readings, each with the option that selects it.
        readings: Vec<String>,
    },
}

impl From<FileError> for DataError {
    fn from(error: FileError) -> Self {
        let problem = match error.problem {
            FileProblem::Io(error) => DataProblem::Io(error),
            FileProblem::Limit(what) => DataProblem::Limit(what),
            FileProblem::Changed(what) => DataProblem::Changed(what),
            FileProblem::Content(what) => DataProblem::Content(what),
            problem => DataProblem::Format(problem.to_string()),
        };
        Self {
            path: error.path,
            place: error.place.map(String::from),
            problem,
            hint: error.hint.map(String::from),
        }
    }
}

impl DataError {
    /// A problem with `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<DataProblem>) -> Self {
        Self { path: path.as_ref().to_owned(), place: None, problem: problem.into(), hint: None }
    }

    /// Adds where in the file the problem is.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Whether the same call may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Transient
    }

    /// Whether the file could not be read because of the device, the network or its permissions. The content of the file
    /// may then be fine.
    pub(crate) fn is_of_storage(&self) -> bool {
        use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        let is_missing =
            |error: &io::Error| matches!(error.kind(), NotFound | NotADirectory | InvalidFilename);
        matches!(&self.problem, DataProblem::Io(error) if !is_missing(error))
    }

    /// What to do about it: the user corrects the path or the dataset, unless the storage failed.
    pub fn kind(&self) -> ErrorKind {
        match &self.problem {
            DataProblem::Io(error) if is_transient(error) => ErrorKind::Transient,
            DataProblem::Io(error) if !is_wrong_path(error) => ErrorKind::Failure,
            _ => ErrorKind::Mistake,
        }
    }

    /// Adds what to try next.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
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
        let is_of_storage =
            |number| DataError::new("a", io::Error::from_raw_os_error(number)).is_of_storage();
        // ENOENT, ENOTDIR; EIO, EACCES, ESTALE, EMFILE.
        assert_eq!([2, 20].map(is_of_storage), [false; 2]);
        assert_eq!([5, 13, 116, 24].map(is_of_storage), [true; 4]);
        assert!(!DataError::new("a", DataProblem::Format("no image".into())).is_of_storage());
    }

    #[test]
    fn the_sentence_names_file_place_problem_and_next_step() {
        let problem = DataProblem::Format("expected 3073 bytes, found 12".into());
        let error = DataError::new("train.bin", problem).at("byte 6146").hint("download the archive again");
        assert_eq!(
            error.to_string(),
            "train.bin, byte 6146: expected 3073 bytes, found 12; download the archive again"
        );
    }
}
