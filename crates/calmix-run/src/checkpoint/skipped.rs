//! Checkpoints that a run cannot continue from.

use calmix_io::error::FileError;

/// The format version of checkpoints that this version of calmix writes and reads.
pub const FORMAT: u32 = 3;

/// An unusable checkpoint.
#[derive(Debug)]
pub struct SkippedCheckpoint {
    /// The step of the checkpoint.
    pub step: u64,
    /// The damaged file, with the location and kind of damage.
    pub reason: FileError,
}
