//! The operations that networks consist of. A network's `forward` is written once, over [`Operations`]: libtorch computes with
//! them, and a graph records them for an export.

use super::layer::{BatchNormLayer, Conv, ConvNorm, Linear};

/// What computes, or records, the operations of a network. A value is a batch of activations: (rows, channels, height, width)
/// before [`mean_of_pixels`](Self::mean_of_pixels), (rows, features) after it.
pub trait Operations {
    /// A batch of activations.
    type Value;
    /// Why an operation fails.
    type Error;

    /// A convolution.
    ///
    /// # Errors
    /// If the operation fails, like those below.
    fn conv(&mut self, x: &Self::Value, layer: &Conv) -> Result<Self::Value, Self::Error>;

    /// BatchNorm.
    ///
    /// # Errors
    /// If the operation fails.
    fn batch_norm(&mut self, x: &Self::Value, layer: &BatchNormLayer) -> Result<Self::Value, Self::Error>;

    /// A convolution and the BatchNorm behind it, which may be folded into it.
    ///
    /// # Errors
    /// If the operation fails.
    fn conv_norm(&mut self, x: &Self::Value, layer: &ConvNorm) -> Result<Self::Value, Self::Error>;

    /// A linear layer.
    ///
    /// # Errors
    /// If the operation fails.
    fn linear(&mut self, x: &Self::Value, layer: &Linear) -> Result<Self::Value, Self::Error>;

    /// `max(x, 0)`.
    ///
    /// # Errors
    /// If the operation fails.
    fn relu(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// `min(max(x, 0), 6)`.
    ///
    /// # Errors
    /// If the operation fails.
    fn relu6(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// `x` if it is positive, else [`LEAKY_SLOPE`]` · x`.
    ///
    /// # Errors
    /// If the operation fails.
    fn leaky_relu(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// The sum of two values of one shape.
    ///
    /// # Errors
    /// If the operation fails.
    fn add(&mut self, x: Self::Value, other: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// The maximum over windows of 3×3 pixels, two pixels apart, with one pixel of padding.
    ///
    /// # Errors
    /// If the operation fails.
    fn max_pool(&mut self, x: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// The mean over all pixels of each channel, in f32.
    ///
    /// # Errors
    /// If the operation fails.
    fn mean_of_pixels(&mut self, x: &Self::Value) -> Result<Self::Value, Self::Error>;
}

/// The slope below zero in all Wide ResNets of this field.
pub const LEAKY_SLOPE: f64 = 0.1;

/// What a network computes for a batch: one row per image.
#[derive(Debug)]
pub struct NetworkOutput<V> {
    /// C numbers per row.
    pub logits: V,
    /// The input of the classifier: pooled features, D numbers per row.
    pub features: V,
}
