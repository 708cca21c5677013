//! Wide ResNets (Zagoruyko and Komodakis 2016) as in the semi-supervised literature: pre-activation blocks, leaky ReLU,
//! BatchNorm with a small momentum.

use super::layer::{BatchNormLayer, Conv, Linear};
use super::layout::{ConvShape, LayoutBuilder};
use super::norm_momentum::WIDE_RESNET as MOMENTUM;
use super::operations::{NetworkOutput, Operations};
use super::{FirstBlock, WideResNetShape};

/// The default epsilon that BatchNorm adds to the variance.
pub const EPSILON: f64 = 1e-3;

/// Channels after the stem.
const STEM: usize = 16;

/// Returns the size of the widest activations per pixel of an image.
pub fn channels_per_pixel(shape: WideResNetShape) -> usize {
    let widest = STEM * shape.width();
    // With four stages, the first has a quarter of the pixels, and the stem all of them.
    if shape.stages() == 4 { STEM.max(widest / 4) } else { widest }
}

/// The layers of a Wide ResNet.
#[derive(Debug)]
pub struct WideResNet {
    pub stem: Conv,
    pub blocks: Vec<ResidualBlock>,
    /// The norm before the classifier.
    pub norm: BatchNormLayer,
    pub classifier: Linear,
}

/// A residual block: two convolutions, each after its BatchNorm.
#[derive(Debug)]
pub struct ResidualBlock {
    /// The norm before the first convolution.
    pub norm1: BatchNormLayer,
    pub conv1: Conv,
    /// The norm before the second convolution.
    pub norm2: BatchNormLayer,
    pub conv2: Conv,
    /// The convolution of the input, where its size or its channels change.
    pub shortcut: Option<Conv>,
    /// The inputs of the two paths.
    pub reads: Reads,
}

/// The inputs of the two paths of a block, which differ between implementations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The convolutions read the activated input and the shortcut the raw one: in all blocks except the first of each stage,
    /// and in Google's form also in the first block of the later stages.
    ActivatedMain,
    /// Both paths read the activated input: the first block of the first stage.
    ActivatedBoth,
    /// Both paths read the raw input, and the first norm is unused: the first block of the later stages in the PyTorch
    /// ports.
    RawBoth,
}

impl WideResNet {
    /// Declares the layers for `classes` classes.
    pub fn new(
        shape: WideResNetShape,
        first: FirstBlock,
        classes: usize,
        builder: &mut LayoutBuilder,
    ) -> Self {
        let stages = shape.stages();
        let mut from = STEM;
        let stem = builder.conv(
            "conv1",
            ConvShape { from: 3, to: STEM, side: 3, stride: 1, depthwise: false },
            true,
        );
        let mut blocks = Vec::new();
        for stage in 0..stages {
            let to = (STEM * shape.width()) << stage;
            for n in 0..shape.blocks_per_stage() {
                // Networks of three stages start at full size; those of four are for larger images and halve them at once.
                let stride = if n == 0 && (stage > 0 || stages == 4) { 2 } else { 1 };
                let reads = match first {
                    _ if n > 0 || from == to => Reads::ActivatedMain,
                    _ if stage == 0 => Reads::ActivatedBoth,
                    FirstBlock::Google => Reads::ActivatedMain,
                    FirstBlock::Torch => Reads::RawBoth,
                };
                let name = format!("block{}.layer.{n}", stage + 1);
                blocks.push(ResidualBlock::new(
                    &name,
                    ConvShape { from, to, side: 3, stride, depthwise: false },
                    reads,
                    builder,
                ));
                from = to;
            }
        }
        let norm = builder.batch_norm("bn1", from, MOMENTUM, EPSILON);
        let classifier = builder.classifier("fc", from, classes);
        Self { stem, blocks, norm, classifier }
    }

    /// Applies the network to images, (rows, 3, height, width).
    pub fn forward<O: Operations>(
        &self,
        images: &O::Value,
        operations: &mut O,
    ) -> Result<NetworkOutput<O::Value>, O::Error> {
        let mut x = operations.conv(images, &self.stem)?;
        for block in &self.blocks {
            x = block.forward(&x, operations)?;
        }
        let x = operations.batch_norm(&x, &self.norm)?;
        let x = operations.leaky_relu(x)?;
        let features = operations.mean_of_pixels(&x)?;
        let logits = operations.linear(&features, &self.classifier)?;
        Ok(NetworkOutput { logits, features })
    }
}

impl ResidualBlock {
    fn new(name: &str, shape: ConvShape, reads: Reads, builder: &mut LayoutBuilder) -> Self {
        let ConvShape { from, to, stride, .. } = shape;
        let inner = ConvShape { from: to, stride: 1, ..shape };
        Self {
            norm1: builder.batch_norm(&format!("{name}.bn1"), from, MOMENTUM, EPSILON),
            conv1: builder.conv(&format!("{name}.conv1"), shape, false),
            norm2: builder.batch_norm(&format!("{name}.bn2"), to, MOMENTUM, EPSILON),
            conv2: builder.conv(&format!("{name}.conv2"), inner, false),
            shortcut: (from != to || stride != 1).then(|| {
                builder.conv(&format!("{name}.convShortcut"), ConvShape { side: 1, ..shape }, false)
            }),
            reads,
        }
    }

    fn forward<O: Operations>(&self, x: &O::Value, operations: &mut O) -> Result<O::Value, O::Error> {
        let activated = operations.batch_norm(x, &self.norm1)?;
        let activated = operations.leaky_relu(activated)?;
        let (main, side) = match self.reads {
            Reads::ActivatedMain => (&activated, x),
            Reads::ActivatedBoth => (&activated, &activated),
            Reads::RawBoth => (x, x),
        };
        let inner = operations.conv(main, &self.conv1)?;
        let inner = operations.batch_norm(&inner, &self.norm2)?;
        let inner = operations.leaky_relu(inner)?;
        let out = operations.conv(&inner, &self.conv2)?;
        let shortcut = self.shortcut.as_ref().map(|shortcut| operations.conv(side, shortcut)).transpose()?;
        operations.add(out, shortcut.as_ref().unwrap_or(x))
    }
}
