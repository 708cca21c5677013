//! Why a model cannot be loaded or used.

use std::path::{Path, PathBuf};

use calmix_data::augment::AugmentError;
use calmix_data::error::DataError;
use calmix_data::loader::LoadError;
use calmix_engine::error::EngineError;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::shown::shown;
use calmix_metrics::error::CalibrationError;

/// Why a model cannot be loaded or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file of the model.
    #[error(transparent)]
    File(#[from] FileError),
    /// The network, or where it runs.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A coverage or a precision that means nothing.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// A image without a view.
    #[error(transparent)]
    View(#[from] AugmentError),
    /// A dataset that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Images that cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A class of a dataset that is none of the model's.
    #[error("the model knows no class {class:?}")]
    UnknownClass {
        /// The class.
        class: String,
        /// The model's.
        known: Vec<String>,
    },
    /// Weights that give no numbers.
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
    /// An error of the engine: if it is about weights, about the file that they come from.
    pub(super) fn of_weights(error: EngineError, path: &Path) -> Self {
        match error {
            EngineError::Weights(error) => {
                Self::File(FileError::new(path, FileProblem::Format(error.to_string())))
            }
            error => Self::Engine(error),
        }
    }
}
