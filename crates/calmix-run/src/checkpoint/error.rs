//! Why a checkpoint cannot be written or used.

use std::path::PathBuf;

use calmix_io::counted::counted;
use calmix_io::shown::shown;

use calmix_io::error::{ErrorKind, FileError};

/// Why there is no checkpoint to continue from, or no new one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are checkpoints, and none of them can be used.
    #[error(
        "{}: none of its {} can be used ({}); nothing was changed: restore a copy of one of them, or start again in a new \
         run folder", shown(.folder.display()), counted(.skipped.len() as u64, "checkpoint"), listed(.skipped)
    )]
    NoneUsable {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// What is wrong with each, newest first.
        skipped: Vec<SkippedCheckpoint>,
    },
    /// A checkpoint cannot be read now. It may be undamaged, so resuming from an older one would lose its steps.
    #[error(
        "{0}; this may be an outage rather than damage, so no older checkpoint is used: check that the disk is mounted and \
         readable, then try again"
    )]
    Unreadable(FileError),
    /// A folder whose name is not that of a checkpoint.
    #[error("{}: not the name of a checkpoint, such as step-000000120; restore its name", shown(.path.display()))]
    Name {
        /// The folder.
        path: PathBuf,
    },
    /// There is a usable checkpoint of this step already, which is never overwritten.
    #[error("{}: the checkpoint of this step already exists; resume from it", shown(.path.display()))]
    Exists {
        /// The checkpoint.
        path: PathBuf,
    },
    /// The newest checkpoint has the format of another version. It is undamaged, so resuming from an older one would lose
    /// its steps.
    #[error(
        "{}: another version of calmix wrote this checkpoint, in format {format}, but this version reads format {}; \
         resume with the version that wrote it, or start a new run in another folder", shown(.path.display()),
         super::FORMAT
    )]
    OtherFormat {
        /// The manifest of the checkpoint.
        path: PathBuf,
        /// The format of the checkpoint.
        format: u32,
    },
}

impl CheckpointError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Name { .. } | Self::OtherFormat { .. } => ErrorKind::Mistake,
            Self::File(error) | Self::Unreadable(error) if error.is_transient() => ErrorKind::Transient,
            _ => ErrorKind::Failure,
        }
    }
}

/// A checkpoint that cannot be used.
#[derive(Debug)]
pub struct SkippedCheckpoint {
    /// The step of the checkpoint.
    pub step: u64,
    /// The file that is damaged, where, and how.
    pub reason: FileError,
}

fn listed(skipped: &[SkippedCheckpoint]) -> String {
    let sentences: Vec<_> = skipped.iter().map(|bad| format!("step {}: {}", bad.step, bad.reason)).collect();
    sentences.join("; ")
}
