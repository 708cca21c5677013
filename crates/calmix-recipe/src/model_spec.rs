//! The part of a model that its weights do not contain: the network or encoder, and its image format.

use serde::{Deserialize, Serialize};

use crate::Recipe;
use crate::network::{Architecture, BottleneckStride, FirstBlock, Pooling};

/// A network and its input images. The number of classes is not included: a model stores their names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The network, such as `wrn-28-2`.
    pub network: Architecture,
    /// The input of the first block of the later stages of a Wide ResNet, such as `google`.
    pub block: FirstBlock,
    /// The convolution of a ResNet-50 bottleneck that halves the image, such as `3x3`.
    // Older model files do not have it.
    #[serde(default)]
    pub stride: BottleneckStride,
    /// The epsilon of batch normalisation; `None` for the network's own value.
    #[serde(default)]
    pub norm_eps: Option<f64>,
    /// The side of its images, in pixels.
    pub size: u32,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: [f64; 3],
    /// The standard deviation of red, green and blue, by which pixel values are then divided.
    pub std: [f64; 3],
}

impl ModelSpec {
    /// Returns a network in its published form on images of `size` pixels per side, with channels from -1 to 1.
    pub fn new(network: Architecture, size: u32) -> Self {
        Self {
            network,
            block: FirstBlock::default(),
            stride: BottleneckStride::default(),
            norm_eps: None,
            size,
            mean: [0.5; 3],
            std: [0.5; 3],
        }
    }

    /// Returns the size of an image, in bytes.
    pub fn image_bytes(&self) -> usize {
        let side = self.size as usize;
        side * side * 3
    }
}

impl From<&Recipe> for ModelSpec {
    fn from(recipe: &Recipe) -> Self {
        let Recipe { network, dataset, augment, .. } = recipe;
        Self {
            network: network.name,
            block: network.block,
            stride: network.stride,
            norm_eps: Some(network.norm_eps).filter(|&eps| eps > 0.0),
            size: augment.size,
            mean: dataset.mean,
            std: dataset.std,
        }
    }
}

/// An image encoder with a head: the input and output of its graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncoderSpec {
    /// The side of its images, in pixels.
    pub size: u32,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: [f64; 3],
    /// The standard deviation of red, green and blue, by which pixel values are then divided.
    pub std: [f64; 3],
    pub output: String,
    /// The conversion of its output to one vector per image.
    pub pooling: Pooling,
}

impl EncoderSpec {
    /// Returns the encoder of a recipe; `None` if its network is one of calmix itself, or if it reads vectors.
    pub fn of(recipe: &Recipe) -> Option<Self> {
        let Recipe { network, dataset, augment, .. } = recipe;
        recipe.has_encoder().then(|| Self {
            size: augment.size,
            mean: dataset.mean,
            std: dataset.std,
            output: network.output.clone(),
            pooling: network.pooling,
        })
    }

    /// Returns the size of an image, in bytes.
    pub fn image_bytes(&self) -> usize {
        let side = self.size as usize;
        side * side * 3
    }
}

// The numbers are never NaN: a recipe and a model file refuse them.
impl Eq for EncoderSpec {}
