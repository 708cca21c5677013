//! Why a checkpoint cannot be made or used.

use std::path::PathBuf;

use calmix_io::counted::counted;
use calmix_io::shown::shown;

use calmix_io::error::FileError;

/// Why there is no checkpoint to continue from, or no new one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are checkpoints, and none of them can be used.
    #[error(
        "{}: none of its {} can be used ({}); nothing was changed: put back a copy of one of them, or \
         begin again in a new run folder", shown(.folder.display()), counted(.skipped.len() as u64, "checkpoint"), listed(.skipped)
    )]
    NoneUsable {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// What is wrong with each, newest first.
        skipped: Vec<SkippedCheckpoint>,
    },
    /// A checkpoint cannot be read now, which is not a damage: going back behind it would lose what it holds.
    #[error(
        "{0}; this may be an outage and no damage, so nothing was passed over: see whether the disk is there and you may \
         read it, and try again"
    )]
    Unreadable(FileError),
    /// A folder that is not called like a checkpoint.
    #[error("{}: not called like a checkpoint, which is step-000000120 or alike; give it back its name", shown(.path.display()))]
    Name {
        /// The folder.
        path: PathBuf,
    },
    /// A checkpoint of this step can be used already: what is good is never written over.
    #[error("{}: the checkpoint of this step is there already; resume from it", shown(.path.display()))]
    Exists {
        /// The checkpoint.
        path: PathBuf,
    },
    /// The newest checkpoint is in a format of another version, which is not a damage: going back behind it would
    /// lose what it holds.
    #[error(
        "{}: another version of calmix wrote this checkpoint, in format {format}, and this version reads format {}; \
         resume with the version that wrote it, or start a new run in another folder", shown(.path.display()),
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
