//! The description of an ONNX encoder that its file lacks: the images that it takes, and which output has the features.

use serde::{Deserialize, Serialize};

use crate::Recipe;
use crate::network::Pooling;

/// An image encoder below a head: what to feed its graph, and what to read from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncoderSpec {
    /// The side of its images, in pixels.
    pub size: u32,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: [f64; 3],
    /// The standard deviation of red, green and blue, by which pixel values are then divided.
    pub std: [f64; 3],
    /// The name of the output.
    pub output: String,
    /// How the output becomes one vector per image.
    pub pooling: Pooling,
}

impl EncoderSpec {
    /// Returns the encoder of a recipe; `None` if its network is one that calmix builds itself, or if it reads vectors.
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
