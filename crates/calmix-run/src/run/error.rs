//! Why a run cannot be started or continued.

use std::io;
use std::path::PathBuf;

use calmix_io::error::{ErrorKind, FileError, FileProblem};
use calmix_io::shown::shown;

/// Why a run's folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file in it cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// There is a run here already.
    #[error("{}: there is a run here already; resume it, or choose another folder", shown(.path.display()))]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// There is something else here.
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
    /// There is no run here.
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
        /// The error of the system.
        source: io::Error,
    },
    /// A process of another machine has not closed the run.
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
}

impl From<FileError> for RunError {
    /// Explains a lock that cannot be taken by what it means for the run.
    fn from(error: FileError) -> Self {
        match error.problem {
            FileProblem::NoLocks(source) => Self::NoLocks { path: error.path, source },
            FileProblem::Foreign(holder) => Self::Foreign { path: error.path, holder },
            FileProblem::Held(holder) => Self::Locked { path: error.path, holder },
            _ => Self::File(error),
        }
    }
}

impl RunError {
    /// What to do about it. A run that another process is using becomes free again.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Exists { .. } | Self::NotEmpty { .. } | Self::NoRun { .. } | Self::NoLocks { .. } => {
                ErrorKind::Mistake
            }
            Self::Locked { .. } | Self::Foreign { .. } => ErrorKind::Failure,
            Self::File(error) => error.kind(),
        }
    }
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
}
