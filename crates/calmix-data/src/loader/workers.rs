//! The settings and the counters of a worker pool.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Settings of the worker pool. They do not affect the bytes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// The number of worker threads.
    pub threads: NonZeroUsize,
    /// The maximum number of batches in progress or waiting.
    pub prefetch: NonZeroUsize,
    /// How long the loader waits for a finished row before it gives up
    /// ([`DataError::Stalled`](crate::error::DataError::Stalled)).
    pub patience: Duration,
}

impl Default for Workers {
    /// One thread per processor, two prefetched batches, and a timeout of two minutes, which is longer than workers wait for
    /// unavailable storage.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            prefetch: NonZeroUsize::MIN.saturating_add(1),
            patience: Duration::from_mins(2),
        }
    }
}

/// Counters of a loader since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Images delivered; both views of an unlabelled sample are one image.
    pub images: u64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Time that the consumer spent waiting for batches.
    pub waited: Duration,
}
