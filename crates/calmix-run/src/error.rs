//! The error of this crate: why a run, or a file of one, cannot be written or read.

use std::io;
use std::path::PathBuf;

use calmix_core::error::CoreError;
use calmix_io::error::{ErrorKind, FileError, FileProblem};
use calmix_io::shown::shown;
use calmix_io::text::counted;
use calmix_io::transient::is_transient;
use calmix_recipe::RecipeError;
use safetensors::SafeTensorError;

use crate::checkpoint::{FORMAT, SkippedCheckpoint};

/// Why a run cannot be started, continued or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The recipe of a run is invalid.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The folder already contains a run.
    #[error("{}: there is a run here already; resume it, or choose another folder", shown(.path.display()))]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder contains something other than a run.
    #[error(
        "{}: not empty: it contains {}; choose a folder that is empty or does not exist yet", shown(.path.display()),
         shown(.found)
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// The name of one of the files in it.
        found: String,
    },
    /// The folder does not contain a run.
    #[error("{}: there is no run here; check the path, or start a run", shown(.path.display()))]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// The file system has no locks.
    #[error(
        "{}: this file system offers no locks ({source}), so calmix cannot make sure that only one process writes the \
         run; put the run folder on another file system, or mount this one with locks (`-o flock` for Lustre, without \
         `nolock` for NFS)", shown(.path.display())
    )]
    NoLocks {
        /// The lock file.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// A process on another machine has not closed the run.
    #[error(
        "{}: {holder}, another machine, has not closed this run, and its lock may not be visible here; make sure that the \
         process has ended, then add `--take-over`", shown(.path.display())
    )]
    Foreign {
        /// The lock file.
        path: PathBuf,
        /// The process and its host.
        holder: String,
    },
    /// Another process holds the lock of the run.
    #[error("{}: {holder} is using this run; wait until it ends, or stop it", shown(.path.display()))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process and its host.
        holder: String,
    },
    /// There are checkpoints, but none is usable.
    #[error(
        "{}: none of its {} can be used ({}); nothing was changed: restore a copy of one of them, or start again in a new \
         run folder", shown(.folder.display()), counted(.skipped.len() as u64, "checkpoint"), listed(.skipped)
    )]
    NoneUsable {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// The problem of each, newest first.
        skipped: Vec<SkippedCheckpoint>,
    },
    /// A checkpoint cannot be read at present. It may be undamaged, so resuming from an older one would lose its steps.
    #[error(
        "{0}; this may be an outage rather than damage, so no older checkpoint is used: check that the disk is mounted and \
         readable, then try again"
    )]
    Unreadable(FileError),
    /// A folder that is not named like a checkpoint.
    #[error("{}: not the name of a checkpoint, such as step-000000120; restore its name", shown(.path.display()))]
    CheckpointName {
        /// The folder.
        path: PathBuf,
    },
    /// A usable checkpoint of this step exists, which is never overwritten.
    #[error("{}: the checkpoint of this step already exists; resume from it", shown(.path.display()))]
    CheckpointExists {
        /// The checkpoint.
        path: PathBuf,
    },
    /// The newest checkpoint has the format of another version. It is undamaged, so resuming from an older one would lose
    /// its steps.
    #[error(
        "{}: another version of calmix wrote this checkpoint, in format {format}, but this version reads format {}; \
         resume with the version that wrote it, or start a new run in another folder", shown(.path.display()),
         FORMAT
    )]
    OtherFormat {
        /// The manifest of the checkpoint.
        path: PathBuf,
        /// The format version of the checkpoint.
        format: u32,
    },
    /// The sample state in a checkpoint does not fit the samples.
    #[error(transparent)]
    Samples(#[from] CoreError),
    /// Bytes that violate their format, or content that the format cannot represent.
    #[error("{0}")]
    Format(String),
    /// A sink failed to write.
    #[error(
        "cannot write to {what}: {source}; free some space, then resume the run from its last checkpoint"
    )]
    Sink {
        /// The file or device that the sink writes to.
        what: &'static str,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The disk has rejected writes for too long, and the queue is full.
    #[error(
        "{problem}; {} MB of events and predictions are waiting to be written, the most that calmix keeps in memory: free \
         some space and resume the run from its last checkpoint", bytes >> 20
    )]
    Backlog {
        /// The number of queued bytes.
        bytes: usize,
        /// The last error of the disk.
        problem: FileError,
    },
}

impl From<FileError> for RunError {
    /// Explains what a failed lock means for the run.
    fn from(error: FileError) -> Self {
        match error.problem {
            FileProblem::NoLocks(source) => Self::NoLocks { path: error.path, source },
            FileProblem::Foreign(holder) => Self::Foreign { path: error.path, holder },
            FileProblem::Held(holder) => Self::Locked { path: error.path, holder },
            _ => Self::File(error),
        }
    }
}

impl From<SafeTensorError> for RunError {
    fn from(error: SafeTensorError) -> Self {
        Self::Format(format!("not a safetensors file: {error}"))
    }
}

impl RunError {
    /// Returns the error for a file whose path the run determined, not the user: a wrong path then means that the run is
    /// damaged.
    pub(crate) fn of_run_file(error: FileError) -> Self {
        Self::File(error.unless_transient(ErrorKind::Failure))
    }

    /// Classifies the error. A run that another process uses becomes available later.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Recipe(error) => error.kind(),
            Self::Exists { .. }
            | Self::NotEmpty { .. }
            | Self::NoRun { .. }
            | Self::NoLocks { .. }
            | Self::CheckpointName { .. }
            | Self::OtherFormat { .. } => ErrorKind::Mistake,
            Self::Unreadable(error) if error.is_transient() => ErrorKind::Transient,
            Self::Sink { source, .. } if is_transient(source) => ErrorKind::Transient,
            _ => ErrorKind::Failure,
        }
    }

    /// Ignores a transient error, since a measurement of pace is not worth waiting for the storage.
    pub fn unless_transient(self) -> Result<(), Self> {
        if self.kind() == ErrorKind::Transient { Ok(()) } else { Err(self) }
    }
}

fn listed(skipped: &[SkippedCheckpoint]) -> String {
    let sentences: Vec<_> = skipped.iter().map(|bad| format!("step {}: {}", bad.step, bad.reason)).collect();
    sentences.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_errors_suggest_what_to_do() {
        let path = PathBuf::from("run/calmix.lock");
        let source = io::Error::from(io::ErrorKind::Unsupported);
        let without_locks = RunError::from(FileError::new(&path, FileProblem::NoLocks(source))).to_string();
        assert!(
            without_locks.starts_with("run/calmix.lock: this file system offers no locks ("),
            "{without_locks}"
        );
        assert!(without_locks.contains("; put the run folder on another file system"), "{without_locks}");
        let holder = "process 1 on there".to_owned();
        let foreign = RunError::from(FileError::new(path, FileProblem::Foreign(holder)));
        assert!(
            foreign.kind() == ErrorKind::Failure && foreign.to_string().contains("--take-over"),
            "{foreign}"
        );
    }

    #[test]
    fn wrong_path_of_an_own_file_is_damage() {
        let missing = || FileError::new("run/recipe.toml", io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(RunError::from(missing()).kind(), ErrorKind::Mistake);
        assert_eq!(RunError::of_run_file(missing()).kind(), ErrorKind::Failure);
    }

    #[test]
    fn kinds_of_checkpoint_errors() {
        let path = PathBuf::from("checkpoints/step-000000120");
        let file = |kind: io::ErrorKind| FileError::new(&path, io::Error::from(kind));
        let kinds = [
            (RunError::CheckpointName { path: path.clone() }, ErrorKind::Mistake),
            (RunError::OtherFormat { path: path.clone(), format: 2 }, ErrorKind::Mistake),
            (RunError::Unreadable(file(io::ErrorKind::TimedOut)), ErrorKind::Transient),
            (RunError::Unreadable(file(io::ErrorKind::PermissionDenied)), ErrorKind::Failure),
            (RunError::CheckpointExists { path: path.clone() }, ErrorKind::Failure),
        ];
        for (error, kind) in kinds {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
