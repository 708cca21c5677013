//! The error of this crate: what is wrong with a dataset, where, and what to try next.
//!
//! A function that reads bytes without knowing their file returns a [`DataProblem`]. It is not an error by itself, so that the
//! compiler demands the file of it before it can reach a user.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use calmix_core::sharding::Shard;
use calmix_io::error::{ErrorKind, FileError, FileProblem};
use calmix_io::redacted::redacted;
use calmix_io::shown::shown;
use calmix_io::transient::{is_transient, is_wrong_path};

use crate::decode::DecodeProblem;
use crate::loader::Tally;

/// Why a dataset cannot be prepared or read, an image not be decoded, or a batch not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder that cannot be used.
    #[error("{}", shown(redacted(&format!("{}{}: {problem}{}", .path.display(), in_place(.place.as_deref()), and_next(.hint.as_deref())))))]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Where in it: a line, a byte, a member, a sample.
        place: Option<String>,
        /// What is wrong.
        problem: DataProblem,
        /// What to try next.
        hint: Option<String>,
    },
    /// Bytes that cannot be decoded to an image.
    #[error("{0}")]
    Image(DecodeProblem),
    /// An image without pixels, which has no views.
    #[error("the image is empty ({width} × {height} pixels)")]
    EmptyImage {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// A buffer of the wrong length for a view.
    #[error("a view of {size} × {size} pixels needs a buffer of {expected} bytes, not {found}")]
    ViewLength {
        /// The size of the view.
        size: u32,
        /// The length that is needed.
        expected: usize,
        /// The length that was given.
        found: usize,
    },
    /// An invalid setting of views.
    #[error("{0}")]
    ViewSetting(String),
    /// A sample cannot be read.
    #[error("sample {id}: {error}")]
    Sample {
        /// The sample.
        id: u64,
        /// What is wrong with it.
        #[source]
        error: Box<DataError>,
    },
    /// A sample can be read, but a view of it cannot be made.
    #[error("sample {id}: {problem}")]
    View {
        /// The sample.
        id: u64,
        /// What is wrong with it.
        problem: DataProblem,
    },
    /// A sample of the labelled stream has no label.
    #[error(
        "sample {id} is in the labelled stream but has no label; check that the split belongs to this dataset"
    )]
    NoLabel {
        /// The sample.
        id: u64,
    },
    /// A worker panicked: a defect of the program, not of the data.
    #[error(
        "a loader thread panicked at sample {id}: {message}; this is a bug: please report it, with the sample"
    )]
    Panicked {
        /// The sample that the worker was working on.
        id: u64,
        /// The message of the panic.
        message: String,
    },
    /// A sample is corrupt, and so is everything that could take its place.
    #[error("sample {id} is corrupt, and so are the {tried} samples tried in its place")]
    NoReplacement {
        /// The sample.
        id: u64,
        /// How many others were tried.
        tried: u64,
    },
    /// More samples are corrupt than a run may skip.
    #[error(
        "{} of {} samples read so far are corrupt, the last is sample {id} ({problem}); \
         repair the dataset, or set a larger loader.corrupt_share", .tally.skipped, .tally.seen
    )]
    TooManyCorrupt {
        /// The last corrupt sample.
        id: u64,
        /// What is wrong with it.
        problem: String,
        /// Samples read and samples skipped so far.
        tally: Tally,
    },
    /// No worker finished a sample within the patience.
    #[error("no sample was loaded for {} s; in progress: {ids:?}; check that the storage is reachable", .after.as_secs_f64())]
    Stalled {
        /// The samples that the workers are working on.
        ids: Vec<u64>,
        /// How long the loader waited.
        after: Duration,
    },
    /// The consumer gave up waiting for a batch.
    #[error("a stop was requested while waiting for a batch")]
    Interrupted,
    /// All workers ended without an error.
    #[error("all loader threads ended before the batch of step {step} was complete")]
    NoWorkers {
        /// The step.
        step: u64,
    },
    /// A stream that must give rows has no samples.
    #[error("the {stream} stream has no samples, but every step takes {rows} rows from it")]
    NoSamples {
        /// Labelled or unlabelled.
        stream: &'static str,
        /// Rows that a group takes in a step.
        rows: u32,
    },
    /// A batch whose rows cannot be divided into equal shards.
    #[error(
        "the {stream} batch of {rows} rows cannot be divided into {shards} equal shards; choose train.batch and \
         train.ratio so that train.shards divides both batches"
    )]
    UnequalShards {
        /// Labelled or unlabelled.
        stream: &'static str,
        /// Rows that a group takes in a step.
        rows: u32,
        /// Shards of a group.
        shards: u32,
    },
    /// Some shards would have no unlabelled sample.
    #[error(
        "{samples} unlabelled samples are too few for {shards} shards, which need one each; choose smaller \
         train.groups or train.shards"
    )]
    FewerThanShards {
        /// Samples of the unlabelled stream.
        samples: u64,
        /// Shards of a step.
        shards: u64,
    },
    /// A shard that the sharding does not have.
    #[error("there is no shard {} in group {}", .0.index, .0.group)]
    NoSuchShard(Shard),
    /// A batch that no memory can hold.
    #[error("a batch of {rows} rows of {bytes} bytes is too large")]
    TooLarge {
        /// Rows of the batch.
        rows: u64,
        /// Bytes of a row.
        bytes: usize,
    },
    /// The system refused to start a worker.
    #[error("a loader thread could not be started: {0}")]
    Thread(#[source] io::Error),
}

/// What can be wrong with a file or its bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum DataProblem {
    /// The system could not read or write.
    Io(io::Error),
    /// The bytes violate their format.
    Format(String),
    /// Larger than what is accepted from untrusted input.
    Limit(String),
    /// The bytes are not the ones that were prepared.
    Changed(String),
    /// Labels, counts or names that contradict each other or the request.
    Content(String),
    /// More than one reading is possible: the user has to choose one.
    Ambiguous {
        /// What was found.
        what: String,
        /// The readings, each with the option that selects it.
        readings: Vec<String>,
    },
}

impl fmt::Display for DataProblem {
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

impl From<io::Error> for DataProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DecodeProblem> for DataProblem {
    fn from(problem: DecodeProblem) -> Self {
        match problem {
            DecodeProblem::Size { .. } | DecodeProblem::Bomb { .. } | DecodeProblem::Bytes(_) => {
                Self::Limit(problem.to_string())
            }
            _ => Self::Format(problem.to_string()),
        }
    }
}

impl From<DataError> for DataProblem {
    /// Drops the file, for an error about another file that it makes unusable.
    fn from(error: DataError) -> Self {
        match error {
            DataError::File { problem, .. } | DataError::View { problem, .. } => problem,
            DataError::Image(problem) => problem.into(),
            DataError::EmptyImage { .. } => Self::Format(error.to_string()),
            _ => Self::Content(error.to_string()),
        }
    }
}

impl From<DecodeProblem> for DataError {
    fn from(problem: DecodeProblem) -> Self {
        Self::Image(problem)
    }
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
        Self::File {
            path: error.path,
            place: error.place.map(String::from),
            problem,
            hint: error.hint.map(String::from),
        }
    }
}

impl DataError {
    /// Returns a problem with `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<DataProblem>) -> Self {
        Self::File { path: path.as_ref().to_owned(), place: None, problem: problem.into(), hint: None }
    }

    /// Adds where in the file the problem is.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        if let Self::File { place, .. } = &mut self {
            *place = Some(at.into());
        }
        self
    }

    /// Adds what to try next.
    #[must_use]
    pub fn hint(mut self, next: impl Into<String>) -> Self {
        if let Self::File { hint, .. } = &mut self {
            *hint = Some(next.into());
        }
        self
    }

    /// Names the file of an image that cannot be decoded, and what to try next.
    #[must_use]
    pub(crate) fn in_file(self, path: impl AsRef<Path>) -> Self {
        match self {
            Self::Image(problem) => {
                let hint = problem.hint();
                Self::new(path, problem).hint(hint)
            }
            error => error,
        }
    }

    /// Makes the problem with the file a violation of its format, in these words.
    #[must_use]
    pub(crate) fn with_format(mut self, words: impl FnOnce(&DataProblem) -> String) -> Self {
        if let Self::File { problem, .. } = &mut self {
            *problem = DataProblem::Format(words(problem));
        }
        self
    }

    /// Returns the file or folder that cannot be used, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Sample { error, .. } => error.path(),
            _ => None,
        }
    }

    /// Returns what is wrong with the file or the sample, if the error is about one.
    pub fn problem(&self) -> Option<&DataProblem> {
        match self {
            Self::File { problem, .. } | Self::View { problem, .. } => Some(problem),
            Self::Sample { error, .. } => error.problem(),
            _ => None,
        }
    }

    /// Returns whether the same call may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Transient
    }

    /// Returns whether the file could not be read because of the device, the network or its permissions. The content of the
    /// file may then be fine.
    pub(crate) fn is_of_storage(&self) -> bool {
        use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        let is_missing =
            |error: &io::Error| matches!(error.kind(), NotFound | NotADirectory | InvalidFilename);
        matches!(self, Self::File { problem: DataProblem::Io(error), .. } if !is_missing(error))
    }

    /// Returns what to do about it. A file that cannot be used is a mistake, unless the storage failed; so is what a loader
    /// finds before its first batch. A sample that cannot be read is found on the way.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File { problem: DataProblem::Io(error), .. } if is_transient(error) => ErrorKind::Transient,
            Self::File { problem: DataProblem::Io(error), .. } if !is_wrong_path(error) => ErrorKind::Failure,
            Self::Sample { error, .. } if error.is_transient() => ErrorKind::Transient,
            Self::File { .. }
            | Self::Image(_)
            | Self::EmptyImage { .. }
            | Self::ViewSetting(_)
            | Self::NoSamples { .. }
            | Self::UnequalShards { .. }
            | Self::FewerThanShards { .. }
            | Self::TooLarge { .. } => ErrorKind::Mistake,
            _ => ErrorKind::Failure,
        }
    }

    /// A panic that was caught while a worker was working on `id`.
    pub(crate) fn panicked(id: u64, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked { id, message: text.unwrap_or("no message").to_owned() }
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
