//! What is wrong with a file, where, and what to try next.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::shown::shown;
use crate::transient::{is_transient, is_wrong_path};

/// A file or folder that cannot be used.
///
/// Its sentence names the path, the place in it and the problem, and ends with what to try next.
#[derive(Debug, thiserror::Error)]
#[error("{}", shown(format!("{}{}: {problem}{}", .path.display(), in_place(.place.as_deref()), and_next(.hint.as_deref()))))]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// Where in it: a line, a byte, a tensor.
    pub place: Option<String>,
    /// What is wrong.
    #[source]
    pub problem: FileProblem,
    /// What to try next.
    pub hint: Option<String>,
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The system could not read or write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are not what their format says.
    #[error("{0}")]
    Format(String),
    /// Larger than what is accepted from outside.
    #[error("{0}")]
    Limit(String),
    /// The bytes are not the ones that were written.
    #[error("{0}")]
    Changed(String),
    /// Counts or names that contradict each other or the request.
    #[error("{0}")]
    Content(String),
}

impl FileError {
    /// A problem with `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<FileProblem>) -> Self {
        Self { path: path.as_ref().to_owned(), place: None, problem: problem.into(), hint: None }
    }

    /// Whether the system could not read what may well be intact: a disk or a filer that is away, rights that are
    /// missing, too many open files. What is missing or of the wrong kind is damage, which no waiting mends.
    pub fn is_outage(&self) -> bool {
        use io::ErrorKind as Kind;
        match &self.problem {
            // A link where a folder should be.
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

    /// Says where in the file.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Whether the same call may succeed later, because the storage is away for a while.
    pub fn is_transient(&self) -> bool {
        matches!(&self.problem, FileProblem::Io(error) if is_transient(error))
    }

    /// Whether it stays until the user names another path or changes its rights.
    pub fn is_wrong_path(&self) -> bool {
        matches!(&self.problem, FileProblem::Io(error) if is_wrong_path(error))
    }

    /// Says what to try next.
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
    fn the_sentence_names_file_place_problem_and_next_step() {
        let problem = FileProblem::Format("expected a number".into());
        let error = FileError::new("events.jsonl", problem).at("line 3").hint("resume the run");
        assert_eq!(error.to_string(), "events.jsonl, line 3: expected a number; resume the run");
    }
}
