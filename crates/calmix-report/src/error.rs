//! The error of this crate: why a report cannot be made.

use std::path::PathBuf;

use calmix_io::error::{ErrorKind, FileError};
use calmix_io::shown::shown;
use calmix_metrics::error::MetricsError;

/// Why a report of a run cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    #[error("{}: this is not a run folder; `calmix inspect FOLDER` lists the runs in a folder", shown(.0.display()))]
    NoRun(PathBuf),
    /// The run stopped before it wrote its recipe.
    #[error("{}: this run has not started, so there is nothing to report yet", shown(.0.display()))]
    NotBegun(PathBuf),
    /// A file of the run cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: its predictions cannot be evaluated: {problem}", shown(.folder.display()))]
    Measure { folder: PathBuf, problem: MetricsError },
    #[error("a plot cannot be rendered as an image: {0}")]
    Raster(String),
}

impl ReportError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoRun(_) | Self::NotBegun(_) => ErrorKind::Mistake,
            // Every run has these files, so a run without them is damaged.
            Self::File(error) if !error.is_transient() => ErrorKind::Failure,
            Self::File(error) => error.kind(),
            Self::Measure { .. } | Self::Raster(_) => ErrorKind::Failure,
        }
    }
}
