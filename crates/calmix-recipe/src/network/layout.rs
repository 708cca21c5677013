//! The parameters of a network: their names, and their positions in one flat buffer.
//!
//! All parameters are in one f32 buffer: first the weights of convolutions, which passes cast to their own precision; then
//! other matrices; then vectors, which are not decayed. The optimiser, the EMA of the weights and the sum over processes are
//! thus operations on whole buffers. Convolution weights are stored as (out, height, width, in), the channels-last layout of
//! the (out, in, height, width) in files.
// libtorch counts in i64; sides and strides are small.
#![allow(clippy::cast_possible_wrap)]

use super::layer::{BatchNormLayer, Conv, ConvNorm, Linear, Padding, ParameterId, StatisticsId};

/// The name, shape and offset of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name, as in PyTorch implementations of the same network.
    pub name: String,
    /// The shape, as in files: (out, in, height, width), (out, in) or (channels).
    pub shape: Vec<usize>,
    pub init: Init,
}

/// The initial value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// A normal distribution with this standard deviation.
    Normal(f64),
    /// A constant.
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
    /// The parameters, in the order in which the network declares them.
    pub parameters: Vec<Parameter>,
    /// The statistics, in the order in which the network applies them.
    pub statistics: Vec<StatisticsLayer>,
    /// The name of the classifier, the final linear layer.
    pub classifier: String,
    /// The convolutions into which the following BatchNorm can be folded.
    pub folds: Vec<ConvNorm>,
}

/// A region of the flat buffer; the regions follow each other in this order.
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

    /// Returns the region of the flat buffer that holds it.
    pub fn region(&self) -> Region {
        match self.shape.len() {
            4 => Region::Convolution,
            2 | 3 => Region::Matrix,
            _ => Region::Vector,
        }
    }
}

impl Layout {
    /// Returns the number of elements of all parameters.
    pub fn len(&self) -> usize {
        self.parameters.iter().map(Parameter::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Returns the number of input features of the classifier.
    pub fn feature_width(&self) -> usize {
        let name = format!("{}.weight", self.classifier);
        let weight = self.parameters.iter().find(|parameter| parameter.name == name);
        weight.and_then(|weight| weight.shape.last()).copied().unwrap_or(0)
    }

    /// Returns whether a parameter belongs to the classifier.
    pub fn is_of_classifier(&self, name: &str) -> bool {
        name.strip_prefix(&*self.classifier).is_some_and(|rest| rest.starts_with('.'))
    }

    /// Iterates over the parameters of a region in the order of the flat buffer.
    pub fn of(&self, region: Region) -> impl Iterator<Item = (ParameterId, &Parameter)> {
        let numbered = self.parameters.iter().enumerate().map(|(n, parameter)| (ParameterId(n), parameter));
        numbered.filter(move |(_, parameter)| parameter.region() == region)
    }

    /// Returns the number of elements of a region.
    pub fn len_of(&self, region: Region) -> usize {
        self.of(region).map(|(_, parameter)| parameter.len()).sum()
    }
}

/// Collects the layers of a network while it is declared.
#[derive(Debug, Default)]
pub struct LayoutBuilder {
    pub layout: Layout,
}

/// The shape of a square convolution; its padding keeps the size at stride one.
#[derive(Debug, Clone, Copy)]
pub struct ConvShape {
    pub from: usize,
    pub to: usize,
    /// The side of the kernel, in pixels.
    pub side: usize,
    /// Pixels from one output to the next.
    pub stride: usize,
    /// Whether each channel has its own kernel.
    pub depthwise: bool,
}

impl LayoutBuilder {
    /// Adds a convolution, initialised Kaiming normal by fan-out (He et al. 2015; without the slope, as in related
    /// implementations).
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

    /// Adds a BatchNorm with the network's own momentum and epsilon.
    pub fn batch_norm(&mut self, name: &str, channels: usize, momentum: f64, epsilon: f64) -> BatchNormLayer {
        let weight = self.parameter(format!("{name}.weight"), &[channels], Init::Constant(1.0));
        let bias = self.parameter(format!("{name}.bias"), &[channels], Init::Constant(0.0));
        self.layout.statistics.push(StatisticsLayer { name: name.to_owned(), channels });
        let statistics = StatisticsId(self.layout.statistics.len() - 1);
        BatchNormLayer { weight, bias, statistics, momentum, epsilon }
    }

    /// Adds a convolution and the BatchNorm that follows it.
    pub fn conv_norm(&mut self, conv: Conv, norm: BatchNormLayer) -> ConvNorm {
        let layer = ConvNorm { conv, norm };
        self.layout.folds.push(layer);
        layer
    }

    /// Adds the final linear layer.
    pub fn classifier(&mut self, name: &str, from: usize, to: usize) -> Linear {
        name.clone_into(&mut self.layout.classifier);
        self.linear(name, from, to)
    }

    /// Adds a linear layer, initialised Xavier normal (Glorot and Bengio 2010).
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
