//! Why a model cannot be loaded or used.

use calmix_core::calibration::CalibrationError;
use calmix_data::augment::AugmentError;
use calmix_data::error::DataError;
use calmix_data::loader::LoadError;
use calmix_engine::error::EngineError;
use calmix_run::error::FileError;

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
    /// A coverage or a precision that means nothing, or held-out labels that contradict themselves.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// A picture without a view.
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
    #[error("the outputs of the network are not finite: its weights are damaged, or it was never trained")]
    NotFinite,
}
