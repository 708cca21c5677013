//! The error of this crate.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_core::error::CoreError;
use calmix_data::error::DataError;
use calmix_head::HeadError;
use calmix_io::error::{ErrorKind, FileError};
use calmix_io::shown::shown;
use calmix_lifecycle::LifecycleError;
use calmix_metrics::error::MetricsError;
use calmix_ort::error::OrtError;
use calmix_recipe::RecipeError;
use calmix_recipe::precision::Precision;
use calmix_run::error::RunError;

/// The reason why a run of a head stopped, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadsError {
    /// The folder, dataset or recipe of the run is missing or wrong.
    #[error(transparent)]
    Lifecycle(LifecycleError),
    #[error(transparent)]
    Head(HeadError),
    /// ONNX Runtime cannot be used, or cannot run the backbone.
    #[error(transparent)]
    Ort(#[from] OrtError),
    #[error(
        "training on {samples} samples takes about {} MB of memory ({} MB for vectors, the rest for what is kept of each \
         sample), but {} MB are available; train on fewer unlabelled samples (labels.unlabelled_count), on fewer threads \
         (train.threads) or in fewer folds (network.folds)", vectors.saturating_add(*state) >> 20, vectors >> 20, available >> 20
    )]
    Memory {
        samples: u64,
        vectors: u64,
        /// Bytes of all other state that grows with the number of samples.
        state: u64,
        available: u64,
    },
    #[error(
        "heads for {classes} classes, chosen on {labels} labels, take about {} MB of memory, but {} MB are available; check \
         that the labels are classes and not ids, or train on fewer labels (labels.count) or in fewer folds (network.folds)",
        bytes >> 20, available >> 20
    )]
    TooManyClasses {
        labels: u64,
        classes: u64,
        /// Bytes of the heads and of their predictions.
        bytes: u64,
        available: u64,
    },
    /// The run was stopped. When it is resumed, its heads are trained again.
    #[error("the run was stopped before its heads were trained; resume it")]
    Stopped,
    #[error("{}: the run has not finished, and a head is evaluated when it has; resume the run", shown(.path.display()))]
    Unfinished { path: PathBuf },
    /// An earlier version computed the features of this run in a precision that this version does not support.
    #[error(
        "{}: the features of this run were computed in {precision}, which this version does not do; train it again, in \
         f32, with `calmix train` and without train.precision", shown(.path.display())
    )]
    OtherPrecision { path: PathBuf, precision: Precision },
}

impl From<HeadError> for HeadsError {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::Stopped => Self::Stopped,
            error => Self::Head(error),
        }
    }
}

impl From<LifecycleError> for HeadsError {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Stopped => Self::Stopped,
            error => Self::Lifecycle(error),
        }
    }
}

/// Converts errors of lower crates that every kind of run can have, by way of `LifecycleError`.
macro_rules! from_lower_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for HeadsError {
            fn from(error: $error) -> Self {
                Self::Lifecycle(error.into())
            }
        })*
    };
}

from_lower_errors!(CoreError, DataError, FileError, MetricsError, RecipeError, RunError);

impl HeadsError {
    /// Returns the kind of the error. If it is not a mistake, trying again may help: a resumed run trains its heads again.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Lifecycle(error) => error.kind(),
            Self::Ort(error) => error.kind(),
            Self::OtherPrecision { .. }
            | Self::Unfinished { .. }
            | Self::Memory { .. }
            | Self::TooManyClasses { .. } => ErrorKind::Mistake,
            Self::Head(_) | Self::Stopped => ErrorKind::Failure,
        }
    }

    /// Returns the error for a file of pretrained weights. The user chose it, so a problem that is not transient is a mistake.
    pub(crate) fn pretrained(error: FileError) -> Self {
        LifecycleError::pretrained(error).into()
    }

    /// Fails with [`Self::Stopped`] once `stop` is true.
    pub(crate) fn check_stop(stop: &AtomicBool) -> Result<(), Self> {
        if stop.load(Ordering::Relaxed) { Err(Self::Stopped) } else { Ok(()) }
    }

    /// Returns the error for a recipe that this version cannot run.
    pub(crate) fn unsupported(sentence: impl Into<String>) -> Self {
        LifecycleError::Unsupported(sentence.into()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_is_one_error() {
        assert!(matches!(HeadError::Stopped.into(), HeadsError::Stopped));
        assert!(matches!(LifecycleError::Stopped.into(), HeadsError::Stopped));
        assert_eq!(HeadsError::Stopped.kind(), ErrorKind::Failure);
    }
}
