//! Errors of the loader.

use std::any::Any;
use std::io;
use std::time::Duration;

use calmix_core::sharding::Shard;
use calmix_io::error::ErrorKind;

use super::corrupt::Tally;
use crate::error::{DataError, DataProblem};

/// Why a batch cannot be made. The error names the sample that caused it, if any.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
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
        #[source]
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

impl LoadError {
    /// Whether the same row may succeed later, because the storage is temporarily unavailable.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Transient
    }

    /// What to do about it. What the loader finds before its first batch is a mistake; a sample that cannot be read is found
    /// on the way.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSamples { .. }
            | Self::UnequalShards { .. }
            | Self::FewerThanShards { .. }
            | Self::TooLarge { .. } => ErrorKind::Mistake,
            Self::Sample { error, .. } if error.is_transient() => ErrorKind::Transient,
            _ => ErrorKind::Failure,
        }
    }

    /// A panic that was caught while a worker was working on `id`.
    pub(super) fn panicked(id: u64, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked { id, message: text.unwrap_or("no message").to_owned() }
    }
}
