//! A network as nodes: its `forward` is recorded with the weights of a file. On its own, this is the graph that ONNX Runtime runs
//! on images.

use std::convert::Infallible;

use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layer::ParameterId;
use calmix_recipe::network::layer::{BatchNormLayer, Conv, ConvNorm, Linear, Padding};
use calmix_recipe::network::layers::NetworkLayers;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::operations::{LEAKY_SLOPE, NetworkOutput, Operations};
use calmix_recipe::network::weights::{self, Part, WeightsProblem};
use safetensors::SafeTensors;

use crate::error::OnnxError;
use crate::graph::{Attribute, Graph, Value};
use crate::pixels::normalised_images;
use crate::tensor::{ElementType, Tensor};

/// Returns a graph with the weights of a safetensors file: input `images` (u8, rows × side × side × 3), outputs `features` and,
/// unless it is a backbone, `logits`.
pub fn network_graph(
    model: &ModelSpec,
    classes: usize,
    part: Part,
    file: &[u8],
) -> Result<Vec<u8>, OnnxError> {
    let (_, layout) = NetworkLayers::of(model, classes);
    let mut graph = Graph::default();
    let images = normalised_images(&mut graph, model);
    let outputs = add_network(&mut graph, model, classes, part, file, &images)?;
    if part == Part::Network {
        graph.output("logits", &outputs.logits, ElementType::F32, &[classes]);
    }
    graph.output("features", &outputs.features, ElementType::F32, &[layout.feature_width()]);
    Ok(graph.into_bytes(&[]))
}

/// Adds a network with the weights of a safetensors file. The classifier of a backbone is not read.
pub fn add_network(
    graph: &mut Graph,
    model: &ModelSpec,
    classes: usize,
    part: Part,
    file: &[u8],
    images: &Value,
) -> Result<NetworkOutput<Value>, OnnxError> {
    let (layers, layout) = NetworkLayers::of(model, classes);
    let weights = NetworkWeights::read(&layout, part, file)?;
    let images = Activations { value: images.clone(), side: i64::from(model.size), is_of_conv: false };
    let mut recording = Recording { graph, layout: &layout, weights, epsilon: model.norm_eps };
    let Ok(NetworkOutput { logits, features }) = layers.forward(&images, &mut recording);
    Ok(NetworkOutput { logits: logits.value, features: features.value })
}

struct NetworkWeights {
    parameters: Vec<Vec<f32>>,
    /// The mean and the variance of each BatchNorm layer.
    statistics: Vec<[Vec<f32>; 2]>,
}

impl NetworkWeights {
    fn read(layout: &Layout, part: Part, file: &[u8]) -> Result<Self, WeightsProblem> {
        let file = SafeTensors::deserialize(file)?;
        weights::check_names(layout, part, &file, true)?;
        let mut parameters = Vec::new();
        for parameter in &layout.parameters {
            let is_unused = part == Part::Backbone && layout.is_of_classifier(&parameter.name);
            parameters.push(if is_unused {
                Vec::new()
            } else {
                weights::numbers(&file, &parameter.name, &parameter.shape)?
            });
        }
        let mut statistics = Vec::new();
        for layer in &layout.statistics {
            let [mean, variance, tracked] = weights::statistics_names(&layer.name);
            let numbers = |name: &str| weights::numbers(&file, name, &[layer.channels]);
            statistics.push([numbers(&mean)?, numbers(&variance)?]);
            // The count is not needed, but a file in which it has another type is not of this network.
            weights::count(&file, &tracked)?;
        }
        Ok(Self { parameters, statistics })
    }

    /// Takes the numbers of a parameter, which only one layer reads.
    fn take(&mut self, id: ParameterId) -> Vec<f32> {
        std::mem::take(&mut self.parameters[id.0])
    }
}

/// A value with the side of its images, which the padding of a convolution may depend on.
struct Activations {
    value: Value,
    side: i64,
    is_of_conv: bool,
}

/// A recorder of a network's operations as nodes.
struct Recording<'a, 'g> {
    graph: &'a mut Graph<'g>,
    layout: &'a Layout,
    weights: NetworkWeights,
    epsilon: Option<f64>,
}

impl Recording<'_, '_> {
    fn name(&self, id: ParameterId) -> &str {
        &self.layout.parameters[id.0].name
    }

    /// Returns the scale and the shift of a BatchNorm in evaluation, `γ/√(σ² + ε)` and `β − μ·γ/√(σ² + ε)`.
    fn scale_and_shift(&self, layer: &BatchNormLayer) -> (Vec<f64>, Vec<f64>) {
        let epsilon = self.epsilon.unwrap_or(layer.epsilon);
        let [mean, variance] = &self.weights.statistics[layer.statistics.0];
        let weight = &self.weights.parameters[layer.weight.0];
        let bias = &self.weights.parameters[layer.bias.0];
        let of_weight = weight.iter().zip(variance);
        let scale: Vec<f64> = of_weight
            .map(|(&weight, &variance)| f64::from(weight) / (f64::from(variance) + epsilon).sqrt())
            .collect();
        let of_bias = bias.iter().zip(mean).zip(&scale);
        let shift =
            of_bias.map(|((&bias, &mean), scale)| f64::from(bias) - f64::from(mean) * scale).collect();
        (scale, shift)
    }

    fn parameter(&mut self, id: ParameterId, numbers: &[f32]) -> Value {
        let name = self.name(id).to_owned();
        let shape = &self.layout.parameters[id.0].shape;
        self.graph.constant(Tensor::f32(name, shape, numbers))
    }

    fn convolution(
        &mut self,
        x: &Activations,
        layer: &Conv,
        weight: &[f32],
        bias: Option<&Value>,
    ) -> Activations {
        let weight = self.parameter(layer.weight, weight);
        let pads = match layer.padding {
            Padding::Around(padding) => vec![padding; 4],
            Padding::Same => {
                let zeros = layer.same_padding(x.side);
                let (before, after) = (zeros / 2, zeros - zeros / 2);
                vec![before, before, after, after]
            }
        };
        let both = pads.first().zip(pads.last()).map_or(0, |(before, after)| before + after);
        let side = (x.side + both - layer.side) / layer.stride + 1;
        let attributes = vec![
            ("group", Attribute::Int(layer.groups)),
            ("kernel_shape", Attribute::Ints(vec![layer.side; 2])),
            ("pads", Attribute::Ints(pads)),
            ("strides", Attribute::Ints(vec![layer.stride; 2])),
        ];
        let inputs: Vec<&Value> = [&x.value, &weight].into_iter().chain(bias).collect();
        Activations { value: self.graph.node_with("Conv", &inputs, attributes), side, is_of_conv: true }
    }

    /// Records a node other than a convolution; its images have this side.
    fn other(
        &mut self,
        operator: &'static str,
        side: i64,
        inputs: &[&Value],
        attributes: Vec<(&'static str, Attribute)>,
    ) -> Activations {
        let value = self.graph.node_with(operator, inputs, attributes);
        Activations { value, side, is_of_conv: false }
    }

    /// Adds a layer's numbers as a constant in f32.
    fn constant(&mut self, name: String, shape: &[usize], numbers: &[f64]) -> Value {
        let numbers: Vec<f32> = numbers.iter().map(|&number| number as f32).collect();
        self.graph.constant(Tensor::f32(name, shape, &numbers))
    }
}

/// Recording cannot fail, because the weights have been read already.
impl Operations for Recording<'_, '_> {
    type Value = Activations;
    type Error = Infallible;

    fn conv(&mut self, x: &Activations, layer: &Conv) -> Result<Activations, Infallible> {
        let weight = self.weights.take(layer.weight);
        let bias = layer.bias.map(|bias| {
            let numbers = self.weights.take(bias);
            self.parameter(bias, &numbers)
        });
        Ok(self.convolution(x, layer, &weight, bias.as_ref()))
    }

    fn batch_norm(&mut self, x: &Activations, layer: &BatchNormLayer) -> Result<Activations, Infallible> {
        let (scale, shift) = self.scale_and_shift(layer);
        let channels = scale.len();
        let name = self.name(layer.weight).to_owned();
        if x.is_of_conv {
            // ONNX Runtime folds a product and a sum into the preceding convolution, unless another node reads its output.
            let shape = [channels, 1, 1];
            let scale = self.constant(format!("{name}.scale"), &shape, &scale);
            let shift = self.constant(format!("{name}.shift"), &shape, &shift);
            let scaled = self.graph.node("Mul", &[&x.value, &scale]);
            return Ok(self.other("Add", x.side, &[&scaled, &shift], Vec::new()));
        }
        // Write it as a depthwise convolution with one number per channel: ONNX Runtime fuses it with the activation and keeps
        // the layout of its convolutions, which a product and a sum would leave. This makes a Wide ResNet a tenth faster.
        let scale = self.constant(format!("{name}.scale"), &[channels, 1, 1, 1], &scale);
        let shift = self.constant(format!("{name}.shift"), &[channels], &shift);
        let attributes = vec![
            ("group", Attribute::Int(channels.cast_signed() as i64)),
            ("kernel_shape", Attribute::Ints(vec![1; 2])),
        ];
        Ok(self.other("Conv", x.side, &[&x.value, &scale, &shift], attributes))
    }

    fn conv_norm(&mut self, x: &Activations, layer: &ConvNorm) -> Result<Activations, Infallible> {
        let (scale, shift) = self.scale_and_shift(&layer.norm);
        let kernels = self.weights.take(layer.conv.weight);
        let each = kernels.len() / scale.len().max(1);
        let folded = kernels.chunks_exact(each.max(1)).zip(&scale);
        let weight: Vec<f32> = folded
            .flat_map(|(kernel, scale)| kernel.iter().map(move |&number| (f64::from(number) * scale) as f32))
            .collect();
        let bias: Vec<f32> = shift.into_iter().map(|number| number as f32).collect();
        let bias = self.parameter(layer.norm.bias, &bias);
        Ok(self.convolution(x, &layer.conv, &weight, Some(&bias)))
    }

    fn linear(&mut self, x: &Activations, layer: &Linear) -> Result<Activations, Infallible> {
        let weight = self.weights.take(layer.weight);
        if weight.is_empty() {
            // The classifier of a backbone; no output depends on it, so record nothing.
            return Ok(Activations { value: x.value.clone(), side: 1, is_of_conv: false });
        }
        let bias = self.weights.take(layer.bias);
        let weight = self.parameter(layer.weight, &weight);
        let bias = self.parameter(layer.bias, &bias);
        let value = affine(self.graph, &x.value, &weight, &bias);
        Ok(Activations { value, side: 1, is_of_conv: false })
    }

    fn relu(&mut self, x: Activations) -> Result<Activations, Infallible> {
        Ok(self.other("Relu", x.side, &[&x.value], Vec::new()))
    }

    fn relu6(&mut self, x: Activations) -> Result<Activations, Infallible> {
        let min = self.graph.constant(Tensor::f32("zero", &[], &[0.0]));
        let max = self.graph.constant(Tensor::f32("six", &[], &[6.0]));
        Ok(self.other("Clip", x.side, &[&x.value, &min, &max], Vec::new()))
    }

    fn leaky_relu(&mut self, x: Activations) -> Result<Activations, Infallible> {
        let alpha = vec![("alpha", Attribute::Float(LEAKY_SLOPE as f32))];
        Ok(self.other("LeakyRelu", x.side, &[&x.value], alpha))
    }

    fn add(&mut self, x: Activations, other: &Activations) -> Result<Activations, Infallible> {
        Ok(self.other("Add", x.side, &[&x.value, &other.value], Vec::new()))
    }

    fn max_pool(&mut self, x: &Activations) -> Result<Activations, Infallible> {
        let attributes = vec![
            ("kernel_shape", Attribute::Ints(vec![3; 2])),
            ("pads", Attribute::Ints(vec![1; 4])),
            ("strides", Attribute::Ints(vec![2; 2])),
        ];
        let side = (x.side - 1) / 2 + 1;
        Ok(self.other("MaxPool", side, &[&x.value], attributes))
    }

    fn mean_of_pixels(&mut self, x: &Activations) -> Result<Activations, Infallible> {
        let value = self.graph.reduce("ReduceMean", &x.value, &[2, 3], false);
        Ok(Activations { value, side: 1, is_of_conv: false })
    }
}

/// Adds `x · weightᵀ + bias`.
pub(crate) fn affine(graph: &mut Graph, x: &Value, weight: &Value, bias: &Value) -> Value {
    graph.node_with("Gemm", &[x, weight, bias], vec![("transB", Attribute::Int(1))])
}
