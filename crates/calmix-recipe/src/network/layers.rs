//! The layers of every architecture, and the width of their activations.

use super::efficientnet_lite::{self, EfficientNetLite};
use super::layout::{Layout, LayoutBuilder};
use super::operations::{NetworkOutput, Operations};
use super::resnet::{self, ResNet50};
use super::wide_resnet::{self, WideResNet};
use super::{Architecture, FirstBlock};
use crate::model_spec::ModelSpec;

/// The layers of a network, by its family.
#[derive(Debug)]
pub enum NetworkLayers {
    WideResNet(WideResNet),
    ResNet50(ResNet50),
    EfficientNetLite(EfficientNetLite),
}

impl NetworkLayers {
    /// Returns the layers and the layout of a network for `classes` classes; names and shapes depend on nothing else.
    pub fn new(architecture: Architecture, first: FirstBlock, classes: usize) -> (Self, Layout) {
        let mut builder = LayoutBuilder::default();
        let layers = match architecture {
            Architecture::WideResNet(shape) => {
                Self::WideResNet(WideResNet::new(shape, first, classes, &mut builder))
            }
            Architecture::ResNet50 => Self::ResNet50(ResNet50::new(classes, &mut builder)),
            Architecture::EfficientNetLite(size) => {
                Self::EfficientNetLite(EfficientNetLite::new(size, classes, &mut builder))
            }
        };
        (layers, builder.layout)
    }

    /// Returns the layers and the layout for a description, which also determines the strides of a ResNet.
    pub fn of(model: &ModelSpec, classes: usize) -> (Self, Layout) {
        let (mut layers, layout) = Self::new(model.network, model.block, classes);
        if let Self::ResNet50(layers) = &mut layers {
            layers.stride_in(model.stride);
        }
        (layers, layout)
    }

    /// Applies the network to images, (rows, 3, height, width).
    pub fn forward<O: Operations>(
        &self,
        images: &O::Value,
        operations: &mut O,
    ) -> Result<NetworkOutput<O::Value>, O::Error> {
        match self {
            Self::WideResNet(layers) => layers.forward(images, operations),
            Self::ResNet50(layers) => layers.forward(images, operations),
            Self::EfficientNetLite(layers) => layers.forward(images, operations),
        }
    }
}

impl Layout {
    /// Returns the layout of a network for `classes` classes.
    pub fn of_network(architecture: Architecture, first: FirstBlock, classes: usize) -> Self {
        NetworkLayers::new(architecture, first, classes).1
    }
}

impl Architecture {
    /// Returns the size of its widest activations per pixel of an image, to which the memory of a pass is proportional.
    pub fn channels_per_pixel(self) -> usize {
        match self {
            Self::WideResNet(shape) => wide_resnet::channels_per_pixel(shape),
            Self::ResNet50 => resnet::CHANNELS_PER_PIXEL,
            Self::EfficientNetLite(_) => efficientnet_lite::CHANNELS_PER_PIXEL,
        }
    }
}
