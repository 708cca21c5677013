//! Errors about a file: what is wrong, where, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::shown::shown;
use crate::transient::{is_transient, is_wrong_path};

/// A file or folder that cannot be used.
///
/// The message names the path, the place in the file and the problem, and ends with what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{}", shown(format!("{}{}: {problem}{}", .path.display(), in_place(.place.as_deref()), and_next(.hint.as_deref()))))]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// The place in the file: a line, a byte, a tensor.
    pub place: Option<String>,
    /// What is wrong with the file.
    #[source]
    pub problem: FileProblem,
    /// What to do next.
    pub hint: Option<String>,
}

/// A problem with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The system could not read or write it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its bytes do not follow its format.
    #[error("{0}")]
    Format(String),
    /// It is larger than the limit for files from outside.
    #[error("{0}")]
    Limit(String),
    /// Its bytes are not the ones that were written.
    #[error("{0}")]
    Changed(String),
    /// Its counts or names contradict each other or the request.
    #[error("{0}")]
    Content(String),
}

impl FileError {
    /// Returns an error about `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<FileProblem>) -> Self {
        Self { path: path.as_ref().to_owned(), place: None, problem: problem.into(), hint: None }
    }

    /// Returns whether the file may be intact but could not be read: the disk or the file server is unavailable, permissions
    /// are missing, or too many files are open. A file that is missing or of the wrong kind is damage, which waiting does not
    /// repair.
    pub fn is_outage(&self) -> bool {
        use io::ErrorKind as Kind;
        match &self.problem {
            // A symbolic link in place of a folder.
            FileProblem::Io(error) if Errno::from_io_error(error) == Some(Errno::LOOP) => false,
            FileProblem::Io(error) => !matches!(
                error.kind(),
                Kind::NotFound
                    | Kind::NotADirectory
                    | Kind::IsADirectory
                    | Kind::UnexpectedEof
                    | Kind::InvalidData
                    | Kind::InvalidInput
            ),
            _ => false,
        }
    }

    /// Adds the place in the file.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Returns whether the same call may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        matches!(&self.problem, FileProblem::Io(error) if is_transient(error))
    }

    /// Returns whether the error stays until the user gives another path or changes its permissions.
    pub fn is_wrong_path(&self) -> bool {
        matches!(&self.problem, FileProblem::Io(error) if is_wrong_path(error))
    }

    /// Adds what to do next.
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
    fn error_names_place_problem_and_next_step() {
        let problem = FileProblem::Format("expected a number".into());
        let error = FileError::new("events.jsonl", problem).at("line 3").hint("resume the run");
        assert_eq!(error.to_string(), "events.jsonl, line 3: expected a number; resume the run");
    }
}
