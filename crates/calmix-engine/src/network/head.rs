//! A head on the features of a frozen backbone: vectors in, logits out.

use calmix_recipe::network::{HeadKind, HeadShape};
use tch::{TchError, Tensor};

use super::Output;
use super::layer::{Linear, Pass};
use super::layout::LayoutBuilder;

/// Units of the hidden layer.
const HIDDEN: usize = 256;

/// The layers of a head.
#[derive(Debug)]
pub(super) struct HeadLayers {
    hidden: Option<Linear>,
    classifier: Linear,
}

impl HeadLayers {
    pub(super) fn new(shape: HeadShape, classes: usize, builder: &mut LayoutBuilder) -> Self {
        let hidden = shape.kind == HeadKind::Hidden;
        let hidden = hidden.then(|| builder.linear("hidden", shape.width, HIDDEN));
        let from = if hidden.is_some() { HIDDEN } else { shape.width };
        Self { hidden, classifier: builder.classifier("classifier", from, classes) }
    }

    pub(super) fn forward(&self, vectors: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let features = match &self.hidden {
            Some(hidden) => hidden.forward(vectors, pass)?.f_relu()?,
            None => vectors.shallow_clone(),
        };
        let logits = self.classifier.forward(&features, pass)?;
        Ok(Output { logits, features })
    }
}
