//! The parameters of a network: their names, and their positions in one flat buffer.
//!
//! All parameters live in one f32 buffer: first the weights of convolutions, which the passes need in their own
//! precision; then other matrices; then vectors, which are not decayed. The optimiser, the average of the weights
//! and the sum over processes are then operations on whole buffers. Convolution weights stand there as (out,
//! height, width, in), which is channels-last of the (out, in, height, width) that files have.
// libtorch counts in i64; sides and strides are small.
#![allow(clippy::cast_possible_wrap)]

use super::layer::{BatchNormLayer, Conv, ConvNorm, Linear, Padding, ParameterId, StatisticsId};

/// The name, shape and start of one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// As in the PyTorch networks of this field.
    pub name: String,
    /// As in files: (out, in, height, width), (out, in) or (channels).
    pub shape: Vec<usize>,
    pub init: Init,
}

/// The initial value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Normal with this deviation.
    Normal(f64),
    /// One number everywhere.
    Constant(f32),
}

// Deviations are never NaN.
impl Eq for Init {}

/// The running statistics of one BatchNorm: a mean and a variance per channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsLayer {
    pub name: String,
    pub channels: usize,
}

/// All parameters and statistics of a network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// In the order the network names them.
    pub parameters: Vec<Parameter>,
    /// In the order the network meets them.
    pub statistics: Vec<StatisticsLayer>,
    /// The name of the classifier: the linear layer at the end.
    pub classifier: String,
    /// Convolutions into which the following BatchNorm can be folded.
    pub folds: Vec<ConvNorm>,
}

/// Where a parameter stands in the flat buffer: the first of these, then the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// Weights of convolutions, cast to the precision of a pass.
    Convolution,
    /// Other matrices: decayed, f32.
    Matrix,
    /// Vectors: not decayed, f32.
    Vector,
}

impl Parameter {
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The region of the flat buffer that holds it.
    pub fn region(&self) -> Region {
        match self.shape.len() {
            4 => Region::Convolution,
            2 | 3 => Region::Matrix,
            _ => Region::Vector,
        }
    }
}

impl Layout {
    /// The number of elements of all parameters.
    pub fn len(&self) -> usize {
        self.parameters.iter().map(Parameter::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// The number of features that the classifier reads.
    pub fn feature_width(&self) -> usize {
        let name = format!("{}.weight", self.classifier);
        let weight = self.parameters.iter().find(|parameter| parameter.name == name);
        weight.and_then(|weight| weight.shape.last()).copied().unwrap_or(0)
    }

    /// Whether a parameter is the classifier's.
    pub fn is_of_classifier(&self, name: &str) -> bool {
        name.strip_prefix(&*self.classifier).is_some_and(|rest| rest.starts_with('.'))
    }

    /// The parameters of a region, in the order they stand in the flat buffer.
    pub fn of(&self, region: Region) -> impl Iterator<Item = (ParameterId, &Parameter)> {
        let numbered = self.parameters.iter().enumerate().map(|(n, parameter)| (ParameterId(n), parameter));
        numbered.filter(move |(_, parameter)| parameter.region() == region)
    }

    /// The number of elements of a region.
    pub fn len_of(&self, region: Region) -> usize {
        self.of(region).map(|(_, parameter)| parameter.len()).sum()
    }
}

/// Collects the layers of a network as it is described.
#[derive(Debug, Default)]
pub struct LayoutBuilder {
    pub layout: Layout,
}

/// The shape of a convolution: square, with as much padding as it needs to keep the size at stride one.
#[derive(Debug, Clone, Copy)]
pub struct ConvShape {
    pub from: usize,
    pub to: usize,
    /// Pixels of a side of the kernel.
    pub side: usize,
    /// Pixels from one output to the next.
    pub stride: usize,
    /// Each channel has a kernel of its own.
    pub depthwise: bool,
}

impl LayoutBuilder {
    /// A convolution, Kaiming normal by fan-out (He et al. 2015; the slope is not counted, as in the peers).
    pub fn conv(&mut self, name: &str, shape: ConvShape, bias: bool) -> Conv {
        let ConvShape { from, to, side, stride, depthwise } = shape;
        let groups = if depthwise { from } else { 1 };
        let deviation = (2.0 / (to / groups * side * side) as f64).sqrt();
        let shape = [to, from / groups, side, side];
        let weight = self.parameter(format!("{name}.weight"), &shape, Init::Normal(deviation));
        let bias = bias.then(|| self.parameter(format!("{name}.bias"), &[to], Init::Constant(0.0)));
        let (side, padding) = (side as i64, Padding::around(side));
        Conv { weight, bias, side, stride: stride as i64, padding, groups: groups as i64 }
    }

    /// A BatchNorm, with the network's own momentum and epsilon.
    pub fn batch_norm(&mut self, name: &str, channels: usize, momentum: f64, epsilon: f64) -> BatchNormLayer {
        let weight = self.parameter(format!("{name}.weight"), &[channels], Init::Constant(1.0));
        let bias = self.parameter(format!("{name}.bias"), &[channels], Init::Constant(0.0));
        self.layout.statistics.push(StatisticsLayer { name: name.to_owned(), channels });
        let statistics = StatisticsId(self.layout.statistics.len() - 1);
        BatchNormLayer { weight, bias, statistics, momentum, epsilon }
    }

    /// A convolution and the BatchNorm that follows it.
    pub fn conv_norm(&mut self, conv: Conv, norm: BatchNormLayer) -> ConvNorm {
        let layer = ConvNorm { conv, norm };
        self.layout.folds.push(layer);
        layer
    }

    /// The linear layer at the end.
    pub fn classifier(&mut self, name: &str, from: usize, to: usize) -> Linear {
        name.clone_into(&mut self.layout.classifier);
        self.linear(name, from, to)
    }

    /// A linear layer, Xavier normal (Glorot and Bengio 2010).
    pub fn linear(&mut self, name: &str, from: usize, to: usize) -> Linear {
        let deviation = (2.0 / (from + to) as f64).sqrt();
        let weight = self.parameter(format!("{name}.weight"), &[to, from], Init::Normal(deviation));
        let bias = self.parameter(format!("{name}.bias"), &[to], Init::Constant(0.0));
        Linear { weight, bias }
    }

    fn parameter(&mut self, name: String, shape: &[usize], init: Init) -> ParameterId {
        self.layout.parameters.push(Parameter { name, shape: shape.to_vec(), init });
        ParameterId(self.layout.parameters.len() - 1)
    }
}
