//! A head on the features of a frozen backbone: vectors in, logits out.

use std::fmt;

use calmix_core::settings::choice;
use tch::{TchError, Tensor};

use super::Output;
use super::layer::{Linear, Pass};
use super::layout::LayoutBuilder;

choice! {
    /// The form of a head on frozen features.
    HeadKind = Linear {
        /// One linear layer.
        Linear = "linear",
        /// A hidden layer of 256 with ReLU, then a linear one.
        Hidden = "hidden",
    }
}

/// Units of the hidden layer.
const HIDDEN: usize = 256;
/// More features than any backbone has.
const WIDEST: usize = 65_536;

/// A head and the width of its vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct HeadShape {
    pub(super) kind: HeadKind,
    pub(super) width: usize,
}

impl HeadShape {
    /// `head-linear-256`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (kind, width) = name.strip_prefix("head-")?.split_once('-')?;
        let width = width.parse().ok().filter(|width| (1..=WIDEST).contains(width))?;
        Some(Self { kind: kind.parse().ok()?, width })
    }
}

impl fmt::Display for HeadShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "head-{}-{}", self.kind, self.width)
    }
}

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
