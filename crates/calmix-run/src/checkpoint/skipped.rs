//! Checkpoints that a run does not continue from.

use calmix_io::error::FileError;

/// The format of checkpoints that this version writes and reads.
pub const FORMAT: u32 = 3;

/// A checkpoint that cannot be used.
#[derive(Debug)]
pub struct SkippedCheckpoint {
    /// The step of the checkpoint.
    pub step: u64,
    /// The file that is damaged, where, and how.
    pub reason: FileError,
}
