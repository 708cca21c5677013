//! The error of this crate: why a run cannot be prepared, evaluated or written.

use std::path::PathBuf;

use calmix_core::error::CoreError;
use calmix_data::error::DataError;
use calmix_io::error::{ErrorKind, FileError};
use calmix_io::shown::shown;
use calmix_metrics::error::MetricsError;
use calmix_recipe::{Difference, RecipeError};
use calmix_run::error::RunError;

use crate::start::error::StartError;
use crate::table::table_error::TableError;

/// Why a run stopped, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifecycleError {
    /// The run folder cannot be used, or a sink cannot write.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the dataset cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of the run cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Predictions do not have the shape that they are used in.
    #[error(transparent)]
    Method(#[from] CoreError),
    /// Metrics cannot be computed.
    #[error(transparent)]
    Calibration(#[from] MetricsError),
    /// The recipe is invalid.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The table of the dataset cannot be used.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The run that the user requested cannot be prepared.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A file of pretrained weights cannot be used.
    #[error(transparent)]
    Pretrained(FileError),
    /// The preparation of the dataset was stopped.
    #[error("interrupted; the partly prepared dataset was deleted")]
    PreparationStopped,
    /// The run has to stop.
    #[error("the run was stopped; resume it")]
    Stopped,
    /// The run stopped before it wrote its recipe.
    #[error("{}: this run was stopped before its first step; start it again with its recipe", shown(.path.display()))]
    NotBegun {
        /// The run folder.
        path: PathBuf,
    },
    /// A resumed run would train differently.
    #[error(
        "{}: a resumed run cannot change these keys: {}; start a new run instead. {}", shown(.path.display()),
         listed(.changes), may_change()
    )]
    Changed {
        /// The folder of the run.
        path: PathBuf,
        /// Every key that would change and may not.
        changes: Vec<Difference>,
    },
    /// The dataset is not the one that the run started with.
    #[error(
        "{}: the dataset has changed: its fingerprint was {before} when the run started and is {now} now; restore the \
         files that it was prepared from, or start a new run", shown(.path.display())
    )]
    OtherDataset {
        /// The folder of the run.
        path: PathBuf,
        /// The fingerprint then.
        before: String,
        /// The fingerprint now.
        now: String,
    },
    /// The split is not the one that the run started with.
    #[error(
        "{}: this is not the split that the run started with, so it would train on other samples; restore split.json as \
         the run wrote it, or start a new run", shown(.path.display())
    )]
    OtherSplit {
        /// The file with the split.
        path: PathBuf,
    },
    /// The list of unlabelled samples has changed since the run started.
    #[error(
        "{}: the list names other samples than when the run {} started, so it would train on other samples; restore the \
         list, or start a new run in another folder (--run-dir)", shown(.list.display()), shown(.path.display())
    )]
    OtherList {
        /// The folder of the run.
        path: PathBuf,
        /// The list.
        list: PathBuf,
    },
    /// A recipe that this version cannot run.
    #[error("{0}")]
    Unsupported(String),
}

impl LifecycleError {
    /// What to do about it. What is not a mistake may pass by itself, or by resuming the run.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Run(error) => error.kind(),
            Self::Data(error) => error.kind(),
            Self::Recipe(error) => error.kind(),
            Self::Pretrained(error) => error.kind(),
            Self::Table(_)
            | Self::Start(_)
            | Self::NotBegun { .. }
            | Self::Changed { .. }
            | Self::OtherDataset { .. }
            | Self::OtherSplit { .. }
            | Self::OtherList { .. }
            | Self::Unsupported(_)
            | Self::Method(CoreError::Memory { .. }) => ErrorKind::Mistake,
            // The paths of a run are its own: one that is wrong is damage.
            Self::File(error) if error.is_transient() => ErrorKind::Transient,
            _ => ErrorKind::Failure,
        }
    }

    /// Returns the error for a file of pretrained weights, which the user chose: whatever is wrong with it is a mistake.
    pub fn pretrained(error: FileError) -> Self {
        Self::Pretrained(error.unless_transient(ErrorKind::Mistake))
    }
}

fn listed(changes: &[Difference]) -> String {
    changes
        .iter()
        .map(|change| format!("{} was {} and would be {}", change.path, change.old, change.new))
        .collect::<Vec<_>>()
        .join("; ")
}

fn may_change() -> String {
    let free = calmix_recipe::may_change();
    format!("Keys that can change: {}", free.join(", "))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn kinds_say_what_to_do() {
        let path = PathBuf::from("run");
        let file = |kind: io::ErrorKind| FileError::new("run/split.json", io::Error::from(kind));
        let kinds = [
            (LifecycleError::OtherSplit { path: path.clone() }, ErrorKind::Mistake),
            (RunError::NoRun { path }.into(), ErrorKind::Mistake),
            (file(io::ErrorKind::NotFound).into(), ErrorKind::Failure),
            (file(io::ErrorKind::TimedOut).into(), ErrorKind::Transient),
            (StartError::Nothing.into(), ErrorKind::Mistake),
            (LifecycleError::pretrained(file(io::ErrorKind::NotFound)), ErrorKind::Mistake),
            (LifecycleError::pretrained(file(io::ErrorKind::TimedOut)), ErrorKind::Transient),
        ];
        for (error, kind) in kinds {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
