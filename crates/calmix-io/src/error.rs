//! Errors about a file: the problem, its location, and what to do next.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use crate::redacted::redacted;
use crate::shown::shown;
use crate::system;
use crate::transient::{is_transient, is_wrong_path};

/// The response that an error calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user has to correct the command, the recipe, a path or the dataset; the same call would fail again.
    Mistake,
    /// The storage or the network is temporarily unavailable: the same call may succeed later.
    Transient,
    /// Everything else: damage, a full disk, a device, another process.
    Failure,
}

/// A file or folder that cannot be used.
///
/// The message names the path, the location in the file and the problem, and ends with a hint.
#[derive(Debug)]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// The location in the file: a line, a byte, a tensor. It and the hint are boxed to keep errors that contain a
    /// `FileError` small.
    pub place: Option<Box<str>>,
    /// What is wrong with the file.
    pub problem: FileProblem,
    /// What to do next.
    pub hint: Option<Box<str>>,
    kind: ErrorKind,
}

/// A problem with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileProblem {
    /// The operating system could not read or write it.
    Io(io::Error),
    /// Its bytes violate its format.
    Format(String),
    /// It exceeds the limit for untrusted files.
    Limit(String),
    /// Its bytes differ from the written ones.
    Changed(String),
    /// Its counts or names contradict each other or the request.
    Content(String),
    /// It cannot be locked, because its file system has no locks.
    NoLocks(io::Error),
    /// The named process on another machine has not released its lock and may still hold it.
    Foreign(String),
    /// Another process, named here, holds its lock.
    Held(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, place, problem, hint, .. } = self;
        let place = place.as_ref().map(|place| format!(", {place}")).unwrap_or_default();
        let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        // The path may be a URL, and the problem may quote the target of a redirected request.
        f.write_str(&shown(redacted(&format!("{}{place}: {problem}{hint}", path.display()))))
    }
}

impl error::Error for FileError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.problem {
            FileProblem::Io(error) | FileProblem::NoLocks(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format(what) | Self::Limit(what) | Self::Changed(what) | Self::Content(what) => {
                f.write_str(&shortened(what))
            }
            Self::NoLocks(error) => write!(f, "this file system offers no locks ({error})"),
            Self::Foreign(holder) => write!(f, "{holder}, another machine, has not released this lock"),
            Self::Held(holder) => write!(f, "{holder} holds this lock"),
        }
    }
}

/// The longest problem that is shown in full, in bytes: a parser quotes the text that it rejects, and a hostile file may
/// have megabytes of it.
const MAX_PROBLEM_BYTES: usize = 2_000;

/// Removes the middle of a long text: its ends say what was expected, and where.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_PROBLEM_BYTES {
        return text.into();
    }
    let start = &text[..text.floor_char_boundary(MAX_PROBLEM_BYTES / 2)];
    let end = &text[text.floor_char_boundary(text.len() - MAX_PROBLEM_BYTES / 4)..];
    format!("{start} … {end}").into()
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl FileError {
    /// Returns an error about `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<FileProblem>) -> Self {
        let problem = problem.into();
        let kind = match &problem {
            FileProblem::Io(error) if is_transient(error) => ErrorKind::Transient,
            FileProblem::Io(error) if is_wrong_path(error) => ErrorKind::Mistake,
            FileProblem::NoLocks(_) => ErrorKind::Mistake,
            _ => ErrorKind::Failure,
        };
        Self { path: path.as_ref().to_owned(), place: None, problem, hint: None, kind }
    }

    /// Returns an error about content that the user has to correct.
    pub fn mistake(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::content(path, what).unless_transient(ErrorKind::Mistake)
    }

    /// Returns an error about bytes that violate their format.
    pub fn format(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FileProblem::Format(what.into()))
    }

    /// Returns an error about something larger than its limit.
    pub fn limit(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FileProblem::Limit(what.into()))
    }

    /// Returns an error about bytes that differ from the written ones.
    pub fn changed(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FileProblem::Changed(what.into()))
    }

    /// Returns an error about counts, names or labels that contradict each other or the request.
    pub fn content(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::new(path, FileProblem::Content(what.into()))
    }

    /// Returns whether the file may be intact but could not be read: the disk or the file server is unavailable, permissions
    /// are missing, or too many files are open. A file that is missing or of the wrong kind is damage, which waiting does
    /// not repair.
    pub fn is_outage(&self) -> bool {
        use io::ErrorKind as Kind;
        match &self.problem {
            // A link in place of a folder.
            FileProblem::Io(error) if system::is_link_refused(error) => false,
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

    /// Adds the location in the file.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into().into_boxed_str()), ..self }
    }

    /// Classifies the error. By default a wrong path is a mistake, and damage is a failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Sets the kind, unless the error is transient.
    #[must_use]
    pub fn unless_transient(self, kind: ErrorKind) -> Self {
        if self.is_transient() { self } else { Self { kind, ..self } }
    }

    /// Returns whether the same call may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        self.kind == ErrorKind::Transient
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into().into_boxed_str()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_place_problem_and_next_step() {
        let problem = "expected a number";
        let error = FileError::format("events.jsonl", problem).at("line 3").hint("resume the run");
        assert_eq!(error.to_string(), "events.jsonl, line 3: expected a number; resume the run");
    }

    #[test]
    fn long_problem_is_shown_without_its_middle() {
        let quoted = "é".repeat(100_000);
        let shown = FileError::format("result.json", format!("unexpected {quoted:?} at line 7")).to_string();
        assert!(
            shown.starts_with("result.json: unexpected \"é") && shown.ends_with("é\" at line 7"),
            "{shown}"
        );
        assert!(shown.contains(" … ") && shown.len() < 2_100, "{} bytes", shown.len());
    }
}
