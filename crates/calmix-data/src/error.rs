//! The error of this crate: what is wrong with a dataset, where, and what to try next.
//!
//! A function that checks bytes without knowing their file returns a [`FormatProblem`]. It does not implement `Error`, so
//! the compiler makes the caller add the file before the error can reach a user.

use std::any::Any;
use std::io;
use std::path::Path;
use std::time::Duration;

use calmix_core::micro_batching::MicroBatch;
use calmix_formats::decode::DecodeProblem;
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_io::error::{ErrorKind, FileError};

/// Why a dataset cannot be prepared or read, an image decoded, or a batch made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder that cannot be used.
    #[error(transparent)]
    File(#[from] FormatError),
    /// Bytes that cannot be decoded to an image.
    #[error("{0}")]
    Image(DecodeProblem),
    /// An image without pixels, which has no views.
    #[error("the image is empty ({width} × {height} pixels)")]
    EmptyImage { width: u32, height: u32 },
    /// A buffer whose length does not match the view.
    #[error("a view of {size} × {size} pixels needs a buffer of {expected} bytes, not {found}")]
    ViewLength {
        /// The size of the view.
        size: u32,
        /// The required length.
        expected: usize,
        /// The actual length.
        found: usize,
    },
    /// An invalid setting of views.
    #[error("{0}")]
    ViewSetting(String),
    /// A sample cannot be read.
    #[error("sample {id}: {error}")]
    Sample {
        id: u64,
        /// What is wrong with it.
        #[source]
        error: Box<DataError>,
    },
    /// A sample can be read, but a view of it cannot be made.
    #[error("sample {id}: {problem}")]
    View {
        id: u64,
        /// What is wrong with it.
        problem: FormatProblem,
    },
    /// A sample of the labelled stream has no label.
    #[error(
        "sample {id} is in the labelled stream but has no label; check that the split belongs to this dataset"
    )]
    NoLabel { id: u64 },
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
    /// A sample is corrupt, and so is every replacement.
    #[error("sample {id} is corrupt, and so are the {tried} samples tried in its place")]
    NoReplacement {
        id: u64,
        /// The number of replacements that were tried.
        tried: u64,
    },
    /// More samples are corrupt than a run may skip.
    #[error(
        "{skipped} of {seen} samples read so far are corrupt, the last is sample {id} ({problem}); \
         repair the dataset, or set a larger loader.corrupt_share"
    )]
    TooManyCorrupt {
        /// The last corrupt sample.
        id: u64,
        /// What is wrong with it.
        problem: String,
        /// Samples read so far, with repetition.
        seen: u64,
        /// Corrupt ones among them.
        skipped: u64,
    },
    /// No worker finished a sample before the timeout.
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
    NoWorkers { step: u64 },
    /// A stream that must deliver rows has no samples.
    #[error("the {stream} stream has no samples, but every step takes {rows} rows from it")]
    NoSamples {
        /// The stream: `labelled` or `unlabelled`.
        stream: &'static str,
        /// Rows per group and step.
        rows: u32,
    },
    /// A batch whose rows cannot be divided into equal micro-batches.
    #[error(
        "the {stream} batch of {rows} rows cannot be divided into {micro_batches} equal micro-batches; choose \
         train.batch and train.ratio so that train.micro_batches divides both batches"
    )]
    UnevenBatch {
        /// The stream: `labelled` or `unlabelled`.
        stream: &'static str,
        /// Rows per group and step.
        rows: u32,
        /// Micro-batches per group.
        micro_batches: u32,
    },
    /// There are fewer unlabelled samples than micro-batches.
    #[error(
        "{samples} unlabelled samples are too few for {micro_batches} micro-batches, which need one each; choose smaller \
         train.groups or train.micro_batches"
    )]
    TooFewUnlabelled {
        /// Samples of the unlabelled stream.
        samples: u64,
        /// Micro-batches per step.
        micro_batches: u64,
    },
    /// A micro-batch number beyond those of a step.
    #[error("there is no micro-batch {} in group {}", .0.index, .0.group)]
    NoSuchMicroBatch(MicroBatch),
    /// A batch that does not fit into memory.
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

impl From<DataError> for FormatProblem {
    /// Drops the file name, for an error about another file that this one makes unusable.
    fn from(error: DataError) -> Self {
        match error {
            DataError::File(FormatError { problem, .. }) | DataError::View { problem, .. } => problem,
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
        Self::File(error.into())
    }
}

impl DataError {
    /// Returns a problem with `path` as a whole.
    pub fn new(path: impl AsRef<Path>, problem: impl Into<FormatProblem>) -> Self {
        Self::File(FormatError::new(path, problem))
    }

    /// Returns an error about bytes that violate their format.
    pub fn format(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::File(FormatError::format(path, what))
    }

    /// Returns an error about something larger than its limit.
    pub fn limit(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::File(FormatError::limit(path, what))
    }

    /// Returns an error about bytes that differ from the written ones.
    pub fn changed(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::File(FormatError::changed(path, what))
    }

    /// Returns an error about counts, names or labels that contradict each other or the request.
    pub fn content(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::File(FormatError::content(path, what))
    }

    /// Adds the location within the file.
    #[must_use]
    pub fn at(self, at: impl Into<String>) -> Self {
        match self {
            Self::File(error) => Self::File(error.at(at)),
            error => error,
        }
    }

    /// Adds what to try next.
    #[must_use]
    pub fn hint(self, next: impl Into<String>) -> Self {
        match self {
            Self::File(error) => Self::File(error.hint(next)),
            error => error,
        }
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

    /// Turns the problem into a violation of the file format, described by `words`.
    #[must_use]
    pub(crate) fn with_format(mut self, words: impl FnOnce(&FormatProblem) -> String) -> Self {
        if let Self::File(FormatError { problem, .. }) = &mut self {
            *problem = FormatProblem::Format(words(problem));
        }
        self
    }

    /// Returns the file or folder that the error is about, if any.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(error) => Some(&error.path),
            Self::Sample { error, .. } => error.path(),
            _ => None,
        }
    }

    /// Returns the problem of the file or sample, if the error is about one.
    pub fn problem(&self) -> Option<&FormatProblem> {
        match self {
            Self::File(FormatError { problem, .. }) | Self::View { problem, .. } => Some(problem),
            Self::Sample { error, .. } => error.problem(),
            _ => None,
        }
    }

    /// Returns whether the same call may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Transient
    }

    /// Returns whether the device, the network or permissions prevented reading. The content of the file may then be intact.
    pub(crate) fn is_storage_failure(&self) -> bool {
        matches!(self, Self::File(error) if error.is_storage_failure())
    }

    /// Classifies the error. An unusable file is a mistake unless the storage failed, and so is an error that a loader
    /// raises before its first batch; an unreadable sample is a failure during the run.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Sample { error, .. } if error.is_transient() => ErrorKind::Transient,
            Self::Image(_)
            | Self::EmptyImage { .. }
            | Self::ViewSetting(_)
            | Self::NoSamples { .. }
            | Self::UnevenBatch { .. }
            | Self::TooFewUnlabelled { .. }
            | Self::TooLarge { .. } => ErrorKind::Mistake,
            _ => ErrorKind::Failure,
        }
    }

    /// Returns the error for a worker that panicked while working on `id`.
    pub(crate) fn panicked(id: u64, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked { id, message: text.unwrap_or("no message").to_owned() }
    }
}
