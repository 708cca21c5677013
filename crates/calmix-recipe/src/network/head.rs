//! A head on the features of a frozen backbone: vectors in, logits out.

use super::layer::Linear;
use super::layout::LayoutBuilder;
use super::{HeadKind, HeadShape};

/// Units of the hidden layer.
const HIDDEN: usize = 256;

/// The layers of a head.
#[derive(Debug)]
pub struct HeadLayers {
    /// The layer below the classifier, if any.
    pub hidden: Option<Linear>,
    /// The last layer.
    pub classifier: Linear,
}

impl HeadLayers {
    /// Names the layers for `classes` classes.
    pub fn new(shape: HeadShape, classes: usize, builder: &mut LayoutBuilder) -> Self {
        let hidden = shape.kind == HeadKind::Hidden;
        let hidden = hidden.then(|| builder.linear("hidden", shape.width, HIDDEN));
        let from = if hidden.is_some() { HIDDEN } else { shape.width };
        Self { hidden, classifier: builder.classifier("classifier", from, classes) }
    }
}
