//! Why a checkpoint cannot be made or used.

use std::path::PathBuf;

use crate::error::FileError;

/// Why there is no checkpoint to continue from, or no new one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are checkpoints, and none of them can be used.
    #[error(
        "{}: none of its {} checkpoints can be used ({}); nothing was changed: put back a copy of one of them, or \
         begin again in a new run folder", .folder.display(), .skipped.len(), listed(.skipped)
    )]
    NoneUsable {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// What is wrong with each, newest first.
        skipped: Vec<SkippedCheckpoint>,
    },
    /// A folder that is not called like a checkpoint.
    #[error("{}: not called like a checkpoint, which is step-000000120 or alike; give it back its name", .path.display())]
    Name {
        /// The folder.
        path: PathBuf,
    },
    /// A checkpoint of this step can be used already: what is good is never written over.
    #[error("{}: the checkpoint of this step is there already; resume from it", .path.display())]
    Exists {
        /// The checkpoint.
        path: PathBuf,
    },
    /// The newest checkpoint is in a format of another version, which is no damage: going back behind it would
    /// lose what it holds.
    #[error(
        "{}: format {format}, but this program reads format {}; use the version that made it", .path.display(),
        super::FORMAT
    )]
    OtherFormat {
        /// Its manifest.
        path: PathBuf,
        /// The format it is in.
        format: u32,
    },
}

/// A checkpoint that cannot be used.
#[derive(Debug)]
pub struct SkippedCheckpoint {
    /// Its step.
    pub step: u64,
    /// Which of its files, where, and what is wrong.
    pub reason: FileError,
}

fn listed(skipped: &[SkippedCheckpoint]) -> String {
    let sentences: Vec<_> = skipped.iter().map(|bad| format!("step {}: {}", bad.step, bad.reason)).collect();
    sentences.join("; ")
}
