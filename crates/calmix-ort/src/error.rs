//! The errors of running networks.

use calmix_io::error::ErrorKind;
use calmix_onnx::error::OnnxError;
use calmix_recipe::device::Device;
use calmix_recipe::network::weights::WeightsProblem;

use crate::library::LibraryProblem;

/// The reason why a network could not be built or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrtError {
    /// ONNX Runtime is missing, too old, or in a place where another user could have put it.
    #[error(transparent)]
    Library(#[from] LibraryProblem),
    /// The weights are not of the network. The caller knows their file and names it.
    #[error("{0}")]
    Weights(WeightsProblem),
    /// The parts of a model contradict each other.
    #[error("{0}")]
    Model(String),
    /// ONNX Runtime does not run on this device.
    #[error("ONNX Runtime does not run on {device} here: {why}; use --device cpu")]
    Device { device: Device, why: String },
    /// The length of an input is not a whole number of rows.
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

// Generic over the builder that such an error carries, which is dropped here.
impl<R> From<ort::Error<R>> for OrtError {
    fn from(error: ort::Error<R>) -> Self {
        Self::Runtime(first_line(error.message()).to_owned())
    }
}

/// Returns the first line of an ONNX Runtime message, without its full stop; the other lines are a stack trace.
pub(crate) fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default().trim_end_matches('.')
}
