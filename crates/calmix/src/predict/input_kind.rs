//! What predictions are about.

use calmix_run::model_info::ModelInfo;

/// What a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
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
