//! What a file of weights does not say of its network: which one it is, and which images it reads.

use serde::{Deserialize, Serialize};

use crate::Recipe;
use crate::network::{Architecture, BottleneckStride, FirstBlock};

/// A network and its images. How many classes it tells apart is not part of it: a model has their names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The network: `wrn-28-2`.
    pub network: Architecture,
    /// What the first block of the later stages of a Wide ResNet reads: `google`.
    pub block: FirstBlock,
    /// Which convolution of a bottleneck of ResNet-50 halves the image: `3x3`.
    // Files of models that are older than the choice do not have it.
    #[serde(default)]
    pub stride: BottleneckStride,
    /// What BatchNorm adds to the variance before the root, where it is not the network's own number.
    #[serde(default)]
    pub norm_eps: Option<f64>,
    /// Pixels of a side of its images.
    pub size: u32,
    /// The mean of red, green and blue, subtracted from pixels in 0 to 1.
    pub mean: [f64; 3],
    /// The standard deviation of red, green and blue, which pixels are then divided by.
    pub std: [f64; 3],
}

impl ModelSpec {
    /// A network in its published form on images of `size` pixels per side, their channels from -1 to 1.
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

    /// Bytes of an image.
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
