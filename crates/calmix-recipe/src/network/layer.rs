//! The layers of networks: the indices of their parameters, and how they are applied.
// libtorch counts in i64; sides and strides are small.
#![allow(clippy::cast_possible_wrap)]

/// A parameter's place in [`Layout::parameters`](super::layout::Layout::parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterId(pub usize);

/// A layer's place in [`Layout::statistics`](super::layout::Layout::statistics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatisticsId(pub usize);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv {
    /// The kernels.
    pub weight: ParameterId,
    /// What is added to each channel, if anything.
    pub bias: Option<ParameterId>,
    /// Of a square kernel.
    pub side: i64,
    /// Pixels from one output to the next.
    pub stride: i64,
    /// The zeros around the input.
    pub padding: Padding,
    /// As many as there are channels in a depthwise convolution, else one.
    pub groups: i64,
}

impl Conv {
    /// The zeros on both ends of a side of `size`, together, if the padding is [`Padding::Same`].
    pub fn same_padding(&self, size: i64) -> i64 {
        let outputs = (size + self.stride - 1) / self.stride;
        ((outputs - 1) * self.stride + self.side - size).max(0)
    }
}

/// The zeros around the input of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// This number on each side.
    Around(i64),
    /// TensorFlow's SAME: enough zeros for ⌈size / stride⌉ outputs, the odd one below and to the right.
    Same,
}

impl Padding {
    /// Keeps the size at stride one.
    pub fn around(side: usize) -> Self {
        Self::Around((side / 2) as i64)
    }
}

/// BatchNorm; parameters and statistics are f32 whatever its input is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormLayer {
    /// The scale of each channel.
    pub weight: ParameterId,
    /// What is added to each channel.
    pub bias: ParameterId,
    /// The running means and variances.
    pub statistics: StatisticsId,
    /// The network's own, in PyTorch's sense: running = (1 − momentum)·running + momentum·batch.
    pub momentum: f64,
    /// Added to the variance.
    pub epsilon: f64,
}

/// A convolution without a bias, and the BatchNorm that follows it.
///
/// Folded, the convolution's weight has the layer's scale in it, and the layer's bias is all that is left to add: half of
/// the memory traffic of a network that is not trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConvNorm {
    pub conv: Conv,
    pub norm: BatchNormLayer,
}

/// A linear layer, in f32.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    /// The matrix.
    pub weight: ParameterId,
    /// What is added to each output.
    pub bias: ParameterId,
}
