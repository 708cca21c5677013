//! The errors of writing a model as an ONNX file.

use calmix_recipe::network::weights::WeightsProblem;

use crate::foreign::problem::ForeignProblem;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The weights are not those of the network.
    #[error("{0}")]
    Weights(WeightsProblem),
    /// The encoder below the head is invalid.
    #[error("the encoder: {0}")]
    Encoder(#[from] ForeignProblem),
    /// The parts of the model contradict each other.
    #[error("{0}")]
    Model(String),
}

impl From<WeightsProblem> for OnnxError {
    fn from(problem: WeightsProblem) -> Self {
        Self::Weights(problem)
    }
}
