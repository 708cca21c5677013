//! The inputs of a model: what kind they are, and a batch of them with the logits of a model.

use calmix_run::model_info::ModelInfo;

/// What a model predicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputKind {
    #[default]
    Image,
    /// A vector of the user's own.
    Vector,
}

impl InputKind {
    /// What a model reads.
    pub fn of(info: &ModelInfo) -> Self {
        if info.reads_vectors() { Self::Vector } else { Self::Image }
    }

    /// One of them, in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Vector => "vector",
        }
    }

    /// The column that names them.
    pub fn column(self) -> &'static str {
        match self {
            Self::Image => "path",
            Self::Vector => "id",
        }
    }
}

/// An input of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedInput {
    /// The name in its row, as [`escaped`](super::row::escaped) writes it.
    pub name: String,
    /// Why it could not be read; `None` if it was.
    pub problem: Option<String>,
}

/// Inputs in the order of their rows, and the outputs of the model for them.
#[derive(Debug, Clone, PartialEq)]
pub struct LogitBatch {
    pub inputs: Vec<NamedInput>,
    /// The logits before calibration of the inputs that could be read, in their order: one number for each class.
    pub logits: Vec<f32>,
    /// The features of the same inputs: the vector before the last layer, or the one below a head; `None` if they are not
    /// requested.
    pub features: Option<Vec<f32>>,
}
