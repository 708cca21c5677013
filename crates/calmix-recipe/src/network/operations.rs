//! The operations of networks. A network's `forward` is written once for all implementations of [`Operations`]: libtorch
//! computes with them, and a graph records them for an export.

use super::layer::{BatchNormLayer, Conv, ConvNorm, Linear};

/// Computes or records the operations of a network. A value is a batch of activations: (rows, channels, height, width)
/// before [`mean_of_pixels`](Self::mean_of_pixels), (rows, features) after it.
pub trait Operations {
    /// A batch of activations.
    type Value;
    /// Why an operation fails.
    type Error;

    /// Applies a convolution.
    fn conv(&mut self, x: &Self::Value, layer: &Conv) -> Result<Self::Value, Self::Error>;

    /// Applies BatchNorm.
    fn batch_norm(&mut self, x: &Self::Value, layer: &BatchNormLayer) -> Result<Self::Value, Self::Error>;

    /// Applies a convolution and the BatchNorm after it, which may be folded into it.
    fn conv_norm(&mut self, x: &Self::Value, layer: &ConvNorm) -> Result<Self::Value, Self::Error>;

    /// Applies a linear layer.
    fn linear(&mut self, x: &Self::Value, layer: &Linear) -> Result<Self::Value, Self::Error>;

    /// Computes `max(x, 0)`.
    fn relu(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Computes `min(max(x, 0), 6)`.
    fn relu6(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Computes `x` if it is positive, otherwise [`LEAKY_SLOPE`]` · x`.
    fn leaky_relu(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Adds two values of the same shape.
    fn add(&mut self, x: Self::Value, other: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// Takes the maximum over windows of 3×3 pixels, two pixels apart, with one pixel of padding.
    fn max_pool(&mut self, x: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// Takes the mean over all pixels of each channel, in f32.
    fn mean_of_pixels(&mut self, x: &Self::Value) -> Result<Self::Value, Self::Error>;
}

/// The slope below zero in the published Wide ResNets.
pub const LEAKY_SLOPE: f64 = 0.1;

/// The output of a network for a batch: one row per image.
#[derive(Debug)]
pub struct NetworkOutput<V> {
    /// The logits: C numbers per row.
    pub logits: V,
    /// The input of the classifier: pooled features, D numbers per row.
    pub features: V,
}
