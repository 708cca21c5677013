//! Pixels as nodes: from bytes to the input of a network.

use calmix_recipe::model_spec::ModelSpec;

use crate::foreign::image_input::ImageLayout;
use crate::graph::{Attribute, Graph, Value};
use crate::tensor::{ElementType, Tensor};

/// The format and the normalisation of a network's images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pixels {
    pub side: u32,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: [f64; 3],
    /// The standard deviation by which pixel values are then divided.
    pub std: [f64; 3],
    /// The order of dimensions that the network expects.
    pub layout: ImageLayout,
}

/// Adds the input `images` (u8, rows × side × side × 3) and its normalisation; returns (rows, 3, side, side) in f32.
pub fn normalised_images(graph: &mut Graph, model: &ModelSpec) -> Value {
    let ModelSpec { size: side, mean, std, .. } = *model;
    Pixels { side, mean, std, layout: ImageLayout::Nchw }.add(graph)
}

impl Pixels {
    /// Adds the input `images` (u8, rows × side × side × 3) and its normalisation; returns f32 in this layout.
    pub fn add(&self, graph: &mut Graph) -> Value {
        let side = self.side as usize;
        let images = graph.input("images", ElementType::U8, &[side, side, 3]);
        let scale = [0, 1, 2].map(|channel| (1.0 / (255.0 * self.std[channel])) as f32);
        let shift = [0, 1, 2].map(|channel| (-self.mean[channel] / self.std[channel]) as f32);
        let shape: &[usize] = match self.layout {
            ImageLayout::Nchw => &[3, 1, 1],
            ImageLayout::Nhwc => &[3],
        };
        let scale = graph.constant(Tensor::f32("pixels.scale", shape, &scale));
        let shift = graph.constant(Tensor::f32("pixels.shift", shape, &shift));
        let pixels = match self.layout {
            // Transpose first, while the pixels are bytes. ONNX Runtime multiplies whole channels by one number fast, but three
            // numbers per pixel one by one, which took a sixth of the time of EfficientNet-Lite0.
            ImageLayout::Nchw => {
                let channels = vec![("perm", Attribute::Ints(vec![0, 3, 1, 2]))];
                graph.node_with("Transpose", &[&images], channels)
            }
            ImageLayout::Nhwc => images,
        };
        let pixels = graph.cast(&pixels, ElementType::F32);
        let scaled = graph.node("Mul", &[&pixels, &scale]);
        graph.node("Add", &[&scaled, &shift])
    }
}
