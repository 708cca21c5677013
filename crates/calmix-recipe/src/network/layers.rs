//! The layers of every architecture, and how wide their activations are.

use super::efficientnet_lite::{self, EfficientNetLite};
use super::layout::{Layout, LayoutBuilder};
use super::resnet::{self, ResNet50};
use super::wide_resnet::{self, WideResNet};
use super::{Architecture, FirstBlock};

/// The layers of a network, by its family.
#[derive(Debug)]
pub enum NetworkLayers {
    /// A Wide ResNet.
    WideResNet(WideResNet),
    /// A ResNet-50.
    ResNet50(ResNet50),
    /// An EfficientNet-Lite.
    EfficientNetLite(EfficientNetLite),
}

impl NetworkLayers {
    /// The layers and the layout of a network for `classes` classes; names and shapes depend on nothing else.
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
}

impl Architecture {
    /// The size of its widest activations per pixel of an image: the memory of a pass is proportional to it.
    pub fn channels_per_pixel(self) -> usize {
        match self {
            Self::WideResNet(shape) => wide_resnet::channels_per_pixel(shape),
            Self::ResNet50 => resnet::CHANNELS_PER_PIXEL,
            Self::EfficientNetLite(_) => efficientnet_lite::CHANNELS_PER_PIXEL,
        }
    }
}
