//! Errors of the loader.

use std::any::Any;
use std::io;
use std::time::Duration;

use calmix_core::sharding::Shard;

use super::corrupt::Tally;
use crate::error::{DataError, DataProblem};

/// Why a batch cannot be made. The error names the sample that caused it, if one did.
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
    #[error("sample {id} is in the labelled stream and has no label; check the split against the dataset")]
    NoLabel {
        /// The sample.
        id: u64,
    },
    /// A worker panicked: a defect of the program, not of the data.
    #[error("a worker panicked at sample {id}: {message}; please report this, with the sample")]
    Panicked {
        /// The sample that the worker was working on.
        id: u64,
        /// The message of the panic.
        message: String,
    },
    /// A sample is corrupt, and so is everything that could take its place.
    #[error("sample {id} is corrupt, and so were the {tried} that could take its place")]
    NoReplacement {
        /// The sample.
        id: u64,
        /// How many others were tried.
        tried: u64,
    },
    /// More samples are corrupt than a run may leave out.
    #[error(
        "{} of {} samples seen are corrupt, the last is sample {id} ({problem}); \
         repair the dataset, or allow a larger share", .tally.skipped, .tally.seen
    )]
    TooManyCorrupt {
        /// The last corrupt sample.
        id: u64,
        /// What is wrong with it.
        problem: String,
        /// How many were seen and skipped.
        tally: Tally,
    },
    /// No worker finished anything for too long.
    #[error("no sample was finished for {} s; in progress: {ids:?}; is the storage reachable?", .after.as_secs_f64())]
    Stalled {
        /// The samples that the workers are working on.
        ids: Vec<u64>,
        /// How long.
        after: Duration,
    },
    /// The consumer gave up waiting for a batch.
    #[error("a request to stop came while a batch was awaited")]
    Interrupted,
    /// All workers ended without an error.
    #[error("all workers ended before the batch of step {step} was complete")]
    NoWorkers {
        /// The step.
        step: u64,
    },
    /// A stream without samples must give rows.
    #[error("the {stream} stream has no samples to take {rows} rows a step from")]
    NoSamples {
        /// Labelled or unlabelled.
        stream: &'static str,
        /// Rows that a group takes in a step.
        rows: u32,
    },
    /// A batch whose rows cannot be cut into equal shards.
    #[error(
        "the {stream} batch of {rows} rows cannot be cut into {shards} equal shards; choose train.batch and \
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
    #[error("{rows} rows of {bytes} bytes are too large for a batch")]
    TooLarge {
        /// Rows of the batch.
        rows: u64,
        /// Bytes of a row.
        bytes: usize,
    },
    /// The system refused to start a worker.
    #[error("a worker thread could not be started: {0}")]
    Thread(#[source] io::Error),
}

impl LoadError {
    /// Whether the same row can perhaps be made later, because the storage is away for a while.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Sample { error, .. } if error.is_transient())
    }

    /// A panic that was caught while a worker was working on `id`.
    pub(super) fn panicked(id: u64, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked { id, message: text.unwrap_or("no message").to_owned() }
    }
}
