//! The layers of networks: the indices of their parameters, and their operations.
// libtorch counts in i64; sides and strides are small.
#![allow(clippy::cast_possible_wrap)]

/// The index of a parameter in [`Layout::parameters`](super::layout::Layout::parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterId(pub usize);

/// The index of a layer in [`Layout::statistics`](super::layout::Layout::statistics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatisticsId(pub usize);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv {
    /// The kernels.
    pub weight: ParameterId,
    /// The bias of each channel, if any.
    pub bias: Option<ParameterId>,
    /// The side of the square kernel.
    pub side: i64,
    /// Pixels from one output to the next.
    pub stride: i64,
    /// The zeros around the input.
    pub padding: Padding,
    /// The number of groups: the number of channels in a depthwise convolution, otherwise one.
    pub groups: i64,
}

impl Conv {
    /// Returns the total padding of a side of `size` if the padding is [`Padding::Same`].
    pub fn same_padding(&self, size: i64) -> i64 {
        let outputs = (size + self.stride - 1) / self.stride;
        ((outputs - 1) * self.stride + self.side - size).max(0)
    }
}

/// The padding of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// This number on each side.
    Around(i64),
    /// TensorFlow's SAME: enough zeros for ⌈size / stride⌉ outputs, with an odd one below or to the right.
    Same,
}

impl Padding {
    /// Returns the padding that keeps the size at stride one.
    pub fn around(side: usize) -> Self {
        Self::Around((side / 2) as i64)
    }
}

/// A BatchNorm layer; parameters and statistics are f32 whatever its input is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormLayer {
    /// The scale of each channel.
    pub weight: ParameterId,
    /// The bias of each channel.
    pub bias: ParameterId,
    /// The running means and variances.
    pub statistics: StatisticsId,
    /// The network's momentum in PyTorch's definition: running = (1 − momentum)·running + momentum·batch.
    pub momentum: f64,
    /// The epsilon that is added to the variance.
    pub epsilon: f64,
}

/// A convolution without a bias, and the BatchNorm that follows it.
///
/// When folded, the scale of the BatchNorm is part of the convolution's weight, and only its bias remains to be added. This
/// halves the memory traffic of a frozen network.
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
    /// The bias of each output.
    pub bias: ParameterId,
}
