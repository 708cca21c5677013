//! ResNet-50 (He et al. 2016) under torchvision's names. The stride of a bottleneck is in its 3×3 convolution, as there,
//! or in the first 1×1, as in Keras.

use calmix_recipe::network::BottleneckStride;
use calmix_recipe::network::norm_momentum::RESNET50 as MOMENTUM;
use tch::{TchError, Tensor};

use super::Output;
use super::layer::{ConvNorm, Linear, Pass, pool, relu};
use super::layout::{ConvShape, LayoutBuilder};

/// PyTorch's default, with which torchvision's weights were trained.
const EPSILON: f64 = 1e-5;

/// 64 channels at a quarter of the pixels, and 256 at a sixteenth.
pub(super) const CHANNELS_PER_PIXEL: usize = 16;

/// A bottleneck widens its channels by this on the way out.
const EXPANSION: usize = 4;

#[derive(Debug)]
pub(super) struct ResNet50 {
    stem: ConvNorm,
    blocks: Vec<Bottleneck>,
    classifier: Linear,
}

#[derive(Debug)]
struct Bottleneck {
    layers: [ConvNorm; 3],
    shortcut: Option<ConvNorm>,
}

impl ResNet50 {
    pub(super) fn new(classes: usize, builder: &mut LayoutBuilder) -> Self {
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

    /// Moves the strides of the bottlenecks to one of their convolutions.
    pub(super) fn stride_in(&mut self, stride: BottleneckStride) {
        for Bottleneck { layers: [first, middle, _], .. } in &mut self.blocks {
            let (first, middle) = (&mut first.conv, &mut middle.conv);
            let whole = first.stride * middle.stride;
            (first.stride, middle.stride) = match stride {
                BottleneckStride::First => (whole, 1),
                BottleneckStride::Middle => (1, whole),
            };
        }
    }

    pub(super) fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let x = relu(self.stem.forward(images, pass)?, pass)?;
        let mut x = x.f_max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)?;
        for block in &self.blocks {
            x = block.forward(&x, pass)?;
        }
        let features = pool(&x)?;
        let logits = self.classifier.forward(&features, pass)?;
        Ok(Output { logits, features })
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

    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let [first, second, third] = &self.layers;
        let inner = relu(first.forward(x, pass)?, pass)?;
        let inner = relu(second.forward(&inner, pass)?, pass)?;
        let mut out = third.forward(&inner, pass)?;
        let shortcut = self.shortcut.as_ref().map(|shortcut| shortcut.forward(x, pass)).transpose()?;
        relu(out.f_add_(shortcut.as_ref().unwrap_or(x))?, pass)
    }
}

fn layer(builder: &mut LayoutBuilder, conv: &str, norm: &str, shape: ConvShape) -> ConvNorm {
    let conv = builder.conv(conv, shape, false);
    let norm = builder.batch_norm(norm, shape.to, MOMENTUM, EPSILON);
    builder.conv_norm(conv, norm)
}
