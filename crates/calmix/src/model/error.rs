//! The errors of loading and using a model.

use std::path::{Path, PathBuf};

use calmix_data::error::DataError;
use calmix_head::HeadError;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::shown::shown;
use calmix_metrics::error::MetricsError;
use calmix_ort::error::OrtError;
use calmix_recipe::precision::Precision;

/// The reason why a model cannot be loaded or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file of the model is missing, damaged or not allowed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The network cannot be run: ONNX Runtime is missing, or it failed.
    #[error(transparent)]
    Runtime(#[from] OrtError),
    /// The head failed.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The coverage or the precision is out of range.
    #[error(transparent)]
    Calibration(#[from] MetricsError),
    /// A dataset cannot be read, or an image cannot be turned into a view.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A class of a dataset is not a class of the model.
    #[error("the model has no class {class:?}")]
    UnknownClass {
        /// The name of the class in the dataset.
        class: String,
        /// The classes of the model.
        known: Vec<String>,
    },
    /// A head of an earlier version was trained on features in a precision that networks are no longer run in.
    #[error(
        "{}: its head was trained on features in {precision}, and calmix computes them in f32",
        shown(.path.display())
    )]
    OtherPrecision {
        /// The file that names the precision.
        path: PathBuf,
        /// The precision of the features.
        precision: Precision,
    },
    /// The outputs of the network contain NaN or infinity.
    #[error(
        "{}: the outputs of the network are not finite: its weights are damaged, or it was never trained",
        shown(.path.display())
    )]
    NotFinite {
        /// The file of the weights.
        path: PathBuf,
    },
}

impl ModelError {
    /// Converts an error of the runtime. An error about weights gets the path of their file.
    pub(super) fn of_weights(error: OrtError, path: &Path) -> Self {
        match error {
            OrtError::Weights(problem) => {
                Self::File(FileError::new(path, FileProblem::Format(problem.to_string())))
            }
            error => Self::Runtime(error),
        }
    }
}
