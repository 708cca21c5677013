//! A batch of inputs with the outputs of a model for them: what every source of predictions yields.

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
