//! The inputs of a model: their kind, and a batch of them with logits.

use calmix_metrics::shift::ObservedRow;
use calmix_run::model_info::ModelInfo;

/// The kind of a model's inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputKind {
    #[default]
    Image,
    /// One of the user's own vectors.
    Vector,
}

impl InputKind {
    /// Returns the kind of inputs that a model reads.
    pub fn of(info: &ModelInfo) -> Self {
        if info.reads_vectors() { Self::Vector } else { Self::Image }
    }

    /// Returns the singular, for messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Vector => "vector",
        }
    }

    /// Returns the name of the column that identifies the inputs.
    pub fn column(self) -> &'static str {
        match self {
            Self::Image => "path",
            Self::Vector => "id",
        }
    }
}

/// An input of a model, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedInput {
    /// The name in its row, escaped by [`escaped`](super::row::escaped).
    pub name: String,
    /// The reason why it could not be read; `None` if it was read.
    pub problem: Option<String>,
}

/// A batch of inputs in the order of their rows, with the outputs of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct LogitBatch {
    pub inputs: Vec<NamedInput>,
    /// The uncalibrated logits of the inputs that could be read, in order, one number per class.
    pub logits: Vec<f32>,
    /// The features of the same inputs, as in [`ViewOutputs`](crate::model::ViewOutputs); `None` if they are not requested.
    pub features: Option<Vec<f32>>,
    /// How the same inputs compare with the reference of the model; empty if it has none.
    pub observed: Vec<ObservedRow>,
}
