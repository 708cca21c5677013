//! The error of this crate: why a head cannot be trained, resumed or evaluated.

use std::path::PathBuf;

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

/// Why a run of a head stopped, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadsError {
    /// What every run needs is missing or wrong: its folder, its dataset, its recipe.
    #[error(transparent)]
    Lifecycle(LifecycleError),
    /// A head cannot be trained or used.
    #[error(transparent)]
    Head(HeadError),
    /// ONNX Runtime cannot be used, or cannot run the backbone.
    #[error(transparent)]
    Ort(#[from] OrtError),
    /// The run does not fit into memory.
    #[error(
        "training on {samples} samples takes about {} MB of memory ({} MB for vectors, the rest for what is kept of each \
         sample), but {} MB are available; train on fewer unlabelled samples (labels.unlabelled_count), on fewer threads \
         (train.threads) or in fewer folds (network.folds)", vectors.saturating_add(*state) >> 20, vectors >> 20, available >> 20
    )]
    Memory {
        /// Samples that are trained on.
        samples: u64,
        /// Bytes of vectors.
        vectors: u64,
        /// Bytes of everything else that grows with the samples.
        state: u64,
        /// Bytes of available memory.
        available: u64,
    },
    /// The heads do not fit into memory.
    #[error(
        "heads for {classes} classes, chosen on {labels} labels, take about {} MB of memory, but {} MB are available; check \
         that the labels are classes and not ids, or train on fewer labels (labels.count) or in fewer folds (network.folds)",
        bytes >> 20, available >> 20
    )]
    TooManyClasses {
        /// Labels that are trained on.
        labels: u64,
        /// Their classes.
        classes: u64,
        /// Bytes of the heads and of their predictions.
        bytes: u64,
        /// Bytes of available memory.
        available: u64,
    },
    /// The run has to stop. Nothing is lost but time: its heads are trained again.
    #[error("the run was stopped before its heads were trained; resume it")]
    Stopped,
    /// A run has no result yet.
    #[error("{}: the run has not finished, and a head is evaluated when it has; resume the run", shown(.path.display()))]
    Unfinished {
        /// The folder of the run.
        path: PathBuf,
    },
    /// A run whose features an earlier version computed in another precision.
    #[error(
        "{}: the features of this run were computed in {precision}, which this version does not do; train it again, in \
         f32, with `calmix train` and without train.precision", shown(.path.display())
    )]
    OtherPrecision {
        /// The folder of the run.
        path: PathBuf,
        /// The precision of its features.
        precision: Precision,
    },
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

/// Errors of the crates below, which a run of any kind can have.
macro_rules! of_every_run {
    ($($error:ty),*) => {
        $(impl From<$error> for HeadsError {
            fn from(error: $error) -> Self {
                Self::Lifecycle(error.into())
            }
        })*
    };
}

of_every_run!(CoreError, DataError, FileError, MetricsError, RecipeError, RunError);

impl HeadsError {
    /// What to do about it. What is not a mistake may pass by itself, or a resumed run trains its heads again.
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

    /// Returns the error for a file of pretrained weights, which the user chose: whatever is wrong with it is a mistake.
    pub(crate) fn pretrained(error: FileError) -> Self {
        LifecycleError::pretrained(error).into()
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
