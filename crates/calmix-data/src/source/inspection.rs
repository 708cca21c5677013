//! Options for checking image files during preparation.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use calmix_formats::decode::DecodeLimits;

use crate::prepare_progress::PrepareProgress;

/// The thoroughness of checking an image file during preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Checks header, size and end: finds files that are not an image, truncated or too large.
    Header,
    /// Decodes the whole image: also finds damage in the pixels, at the cost of decoding it.
    Full,
}

/// The number of images up to which sources decode every image by default, which takes a few minutes at most.
pub const FULL_UP_TO: u64 = 200_000;

/// Options for checking image files during preparation.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// The maximum size of an image.
    pub limits: DecodeLimits,
    /// The thoroughness; by default [`Check::Full`] up to [`FULL_UP_TO`] images and [`Check::Header`] beyond.
    pub check: Option<Check>,
    /// The shorter side to which larger images are [shrunk](crate::shrink); 0 to keep their size.
    pub shrink: u32,
    /// The number of reading threads, 0 for one per core. It does not affect the result.
    pub threads: usize,
    /// Receives the progress of the preparation.
    pub progress: Option<Arc<PrepareProgress>>,
    /// The folder in which a preparation of shards stores its scans, to continue after a kill; `None` to store none.
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
