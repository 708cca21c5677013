//! Why a run cannot be begun or continued.

use std::path::PathBuf;

use crate::error::FileError;

/// Why a run's folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file in it cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is a run here already.
    #[error("{}: there is a run here already; resume it, or name another folder", .path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// There is something else here.
    #[error("{}: not empty, it has {found} in it; name a folder that is empty or does not exist yet", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One of the names in it.
        found: String,
    },
    /// There is no run here.
    #[error("{}: there is no run here; check the name, or begin one", .path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has the run.
    #[error("{}: {holder} has this run; wait until it ends, or stop it", .path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// Which process, on which host.
        holder: String,
    },
}
