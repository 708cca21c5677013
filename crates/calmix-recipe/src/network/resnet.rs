//! ResNet-50 (He et al. 2016) under torchvision's names. The stride of a bottleneck is in its 3×3 convolution, as in
//! torchvision, or in the first 1×1, as in Keras.

use super::BottleneckStride;
use super::layer::{ConvNorm, Linear};
use super::layout::{ConvShape, LayoutBuilder};
use super::norm_momentum::RESNET50 as MOMENTUM;
use super::operations::{NetworkOutput, Operations};

/// PyTorch's default, which torchvision's weights were trained with.
const EPSILON: f64 = 1e-5;

/// The widest activations are 64 channels at a quarter of the pixels, and 256 at a sixteenth.
pub const CHANNELS_PER_PIXEL: usize = 16;

/// The factor by which a bottleneck widens its channels on output.
const EXPANSION: usize = 4;

#[derive(Debug)]
pub struct ResNet50 {
    pub stem: ConvNorm,
    pub blocks: Vec<Bottleneck>,
    pub classifier: Linear,
}

/// A bottleneck block: three convolutions, narrow in the middle.
#[derive(Debug)]
pub struct Bottleneck {
    pub layers: [ConvNorm; 3],
    /// The convolution of the input, where its size or its channels change.
    pub shortcut: Option<ConvNorm>,
}

impl ResNet50 {
    /// Declares the layers for `classes` classes.
    pub fn new(classes: usize, builder: &mut LayoutBuilder) -> Self {
        let shape = ConvShape { from: 3, to: 64, side: 7, stride: 2, depthwise: false };
        let stem = layer(builder, "conv1", "bn1", shape);
        let mut from = 64;
        let mut blocks = Vec::new();
        for (stage, count) in [3, 4, 6, 3].into_iter().enumerate() {
            let inner = 64 << stage;
            for n in 0..count {
                let stride = if n == 0 && stage > 0 { 2 } else { 1 };
                let name = format!("layer{}.{n}", stage + 1);
                blocks.push(Bottleneck::new(&name, from, inner, stride, builder));
                from = inner * EXPANSION;
            }
        }
        let classifier = builder.classifier("fc", from, classes);
        Self { stem, blocks, classifier }
    }

    /// Applies the network to images, (rows, 3, height, width).
    pub fn forward<O: Operations>(
        &self,
        images: &O::Value,
        operations: &mut O,
    ) -> Result<NetworkOutput<O::Value>, O::Error> {
        let x = operations.conv_norm(images, &self.stem)?;
        let x = operations.relu(x)?;
        let mut x = operations.max_pool(&x)?;
        for block in &self.blocks {
            x = block.forward(&x, operations)?;
        }
        let features = operations.mean_of_pixels(&x)?;
        let logits = operations.linear(&features, &self.classifier)?;
        Ok(NetworkOutput { logits, features })
    }

    /// Moves the strides of the bottlenecks to one of their convolutions.
    pub fn stride_in(&mut self, stride: BottleneckStride) {
        for Bottleneck { layers: [first, middle, _], .. } in &mut self.blocks {
            let (first, middle) = (&mut first.conv, &mut middle.conv);
            let whole = first.stride * middle.stride;
            (first.stride, middle.stride) = match stride {
                BottleneckStride::First => (whole, 1),
                BottleneckStride::Middle => (1, whole),
            };
        }
    }
}

impl Bottleneck {
    fn new(name: &str, from: usize, inner: usize, stride: usize, builder: &mut LayoutBuilder) -> Self {
        let to = inner * EXPANSION;
        let shapes = [
            ConvShape { from, to: inner, side: 1, stride: 1, depthwise: false },
            ConvShape { from: inner, to: inner, side: 3, stride, depthwise: false },
            ConvShape { from: inner, to, side: 1, stride: 1, depthwise: false },
        ];
        let mut n = 0;
        let layers = shapes.map(|shape| {
            n += 1;
            layer(builder, &format!("{name}.conv{n}"), &format!("{name}.bn{n}"), shape)
        });
        let shortcut = (from != to || stride != 1).then(|| {
            let shape = ConvShape { from, to, side: 1, stride, depthwise: false };
            layer(builder, &format!("{name}.downsample.0"), &format!("{name}.downsample.1"), shape)
        });
        Self { layers, shortcut }
    }

    fn forward<O: Operations>(&self, x: &O::Value, operations: &mut O) -> Result<O::Value, O::Error> {
        let [first, second, third] = &self.layers;
        let inner = operations.conv_norm(x, first)?;
        let inner = operations.relu(inner)?;
        let inner = operations.conv_norm(&inner, second)?;
        let inner = operations.relu(inner)?;
        let out = operations.conv_norm(&inner, third)?;
        let shortcut =
            self.shortcut.as_ref().map(|shortcut| operations.conv_norm(x, shortcut)).transpose()?;
        let out = operations.add(out, shortcut.as_ref().unwrap_or(x))?;
        operations.relu(out)
    }
}

fn layer(builder: &mut LayoutBuilder, conv: &str, norm: &str, shape: ConvShape) -> ConvNorm {
    let conv = builder.conv(conv, shape, false);
    let norm = builder.batch_norm(norm, shape.to, MOMENTUM, EPSILON);
    builder.conv_norm(conv, norm)
}
