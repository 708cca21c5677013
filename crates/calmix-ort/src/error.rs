//! Why a network does not run.

use calmix_io::error::ErrorKind;
use calmix_onnx::error::OnnxError;
use calmix_recipe::device::Device;
use calmix_recipe::network::weights::WeightsProblem;

use crate::library::LibraryProblem;

/// Why a network could not be built or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrtError {
    /// ONNX Runtime is missing, too old, or lies where another user could have put it.
    #[error(transparent)]
    Library(#[from] LibraryProblem),
    /// Weights that do not belong to the network. The caller knows their file and names it.
    #[error("{0}")]
    Weights(WeightsProblem),
    /// The parts of a model contradict each other.
    #[error("{0}")]
    Model(String),
    /// A device that ONNX Runtime does not run on.
    #[error("ONNX Runtime does not run on {device} here: {why}; use --device cpu")]
    Device { device: Device, why: String },
    /// An input whose length is not a whole number of rows.
    #[error("{length} {what} are not whole rows of {row}")]
    Input { what: &'static str, length: usize, row: usize },
    /// ONNX Runtime refused an operation: too little memory, a driver error, or a bug in calmix.
    #[error("ONNX Runtime failed: {0}")]
    Runtime(String),
}

impl OrtError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Library(_) | Self::Device { .. } => ErrorKind::Mistake,
            _ => ErrorKind::Failure,
        }
    }
}

impl From<OnnxError> for OrtError {
    fn from(error: OnnxError) -> Self {
        match error {
            OnnxError::Weights(problem) => Self::Weights(problem),
            other => Self::Model(other.to_string()),
        }
    }
}

impl From<WeightsProblem> for OrtError {
    fn from(problem: WeightsProblem) -> Self {
        Self::Weights(problem)
    }
}

// Generic: a builder's error carries the builder, which this drops.
impl<R> From<ort::Error<R>> for OrtError {
    fn from(error: ort::Error<R>) -> Self {
        Self::Runtime(first_line(error.message()).to_owned())
    }
}

/// The first line of a message of ONNX Runtime, without its full stop; the lines after it are a stack trace.
pub(crate) fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default().trim_end_matches('.')
}
