//! ResNet-50 (He et al. 2016) in the form of torchvision: the stride is in the 3×3 convolution.

use tch::{TchError, Tensor};

use super::Output;
use super::layer::{BatchNormLayer, Conv, Linear, Pass, pool};
use super::layout::{ConvShape, LayoutBuilder};

/// PyTorch's defaults, which torchvision's weights were made with.
pub(super) const MOMENTUM: f64 = 0.1;
const EPSILON: f64 = 1e-5;

/// A bottleneck widens its channels by this on the way out.
const EXPANSION: usize = 4;

#[derive(Debug)]
pub(super) struct ResNet50 {
    stem: Conv,
    norm: BatchNormLayer,
    blocks: Vec<Bottleneck>,
    classifier: Linear,
}

#[derive(Debug)]
struct Bottleneck {
    layers: [(Conv, BatchNormLayer); 3],
    shortcut: Option<(Conv, BatchNormLayer)>,
}

impl ResNet50 {
    pub(super) fn new(classes: usize, builder: &mut LayoutBuilder) -> Self {
        let stem =
            builder.conv("conv1", ConvShape { from: 3, to: 64, side: 7, stride: 2, depthwise: false }, false);
        let norm = builder.batch_norm("bn1", 64, MOMENTUM, EPSILON);
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
        Self { stem, norm, blocks, classifier }
    }

    pub(super) fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let x = self.norm.forward(&self.stem.forward(images, pass)?, pass)?.f_relu_()?;
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
            let conv = builder.conv(&format!("{name}.conv{n}"), shape, false);
            (conv, builder.batch_norm(&format!("{name}.bn{n}"), shape.to, MOMENTUM, EPSILON))
        });
        let shortcut = (from != to || stride != 1).then(|| {
            let conv = builder.conv(
                &format!("{name}.downsample.0"),
                ConvShape { from, to, side: 1, stride, depthwise: false },
                false,
            );
            (conv, builder.batch_norm(&format!("{name}.downsample.1"), to, MOMENTUM, EPSILON))
        });
        Self { layers, shortcut }
    }

    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let norm =
            |layer: &(Conv, BatchNormLayer), x: &Tensor| layer.1.forward(&layer.0.forward(x, pass)?, pass);
        let [first, second, third] = &self.layers;
        let inner = norm(first, x)?.f_relu_()?;
        let inner = norm(second, &inner)?.f_relu_()?;
        let mut out = norm(third, &inner)?;
        let shortcut = self.shortcut.as_ref().map(|shortcut| norm(shortcut, x)).transpose()?;
        out.f_add_(shortcut.as_ref().unwrap_or(x))?.f_relu_()
    }
}
