//! How image files are read during preparation.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use calmix_formats::decode::DecodeLimits;

use crate::prepare_progress::PrepareProgress;

/// How thoroughly an image file is checked during preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Its header, its size and its end: finds files that are not an image, cut short or too large.
    Header,
    /// Decoded whole: finds damage inside the pixels too, at the price of one decoding.
    Full,
}

/// Up to this many images, sources decode every image by default, which takes a few minutes at most.
pub const FULL_UP_TO: u64 = 200_000;

/// How image files are read during preparation.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// How large an image may be.
    pub limits: DecodeLimits,
    /// How thoroughly; by default [`Check::Full`] up to [`FULL_UP_TO`] images and [`Check::Header`] beyond.
    pub check: Option<Check>,
    /// The shorter side to which larger images are [shrunk](crate::shrink); 0 for none.
    pub shrink: u32,
    /// Threads that read them; 0 for one per core. Results do not depend on it.
    pub threads: usize,
    /// Receives the progress of the preparation.
    pub progress: Option<Arc<PrepareProgress>>,
    /// The folder in which a preparation of shards keeps what it has read, to continue after a kill; `None` to keep nothing.
    pub scans: Option<PathBuf>,
}

impl Inspection {
    pub(super) fn thread_count(&self) -> usize {
        match self.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }

    pub(super) fn check_for(&self, images: u64) -> Check {
        self.check.unwrap_or(if images <= FULL_UP_TO { Check::Full } else { Check::Header })
    }
}
