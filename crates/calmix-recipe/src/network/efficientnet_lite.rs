//! EfficientNet-Lite (Tan and Le 2019, without squeeze-excite and with ReLU6) in TensorFlow's form: a convolution with
//! a stride pads its input below and to the right first. Names are timm's `tf_efficientnet_lite*`.

use super::EfficientNetLiteSize;
use super::layer::{Conv, ConvNorm, Linear, Padding};
use super::layout::{ConvShape, LayoutBuilder};
use super::norm_momentum::EFFICIENTNET_LITE as MOMENTUM;
use super::operations::{NetworkOutput, Operations};

const EPSILON: f64 = 1e-3;

/// The first block that widens its channels has 96 channels at a quarter of the pixels.
pub const CHANNELS_PER_PIXEL: usize = 24;

const STEM: usize = 32;
const HEAD: usize = 1280;
/// The factor by which a block widens its channels, except in the first stage.
const EXPANSION: usize = 6;

/// Kernel side and stride of the depthwise convolutions, channels and blocks of each stage, before scaling.
const STAGES: [(usize, usize, usize, usize); 7] = [
    (3, 1, 16, 1),
    (3, 2, 24, 2),
    (5, 2, 40, 2),
    (3, 2, 80, 3),
    (5, 1, 112, 3),
    (5, 2, 192, 4),
    (3, 1, 320, 1),
];

/// Returns the width and depth multipliers relative to the smallest size, in tenths.
fn tenths(size: EfficientNetLiteSize) -> (usize, usize) {
    match size {
        EfficientNetLiteSize::Lite0 => (10, 10),
        EfficientNetLiteSize::Lite1 => (10, 11),
        EfficientNetLiteSize::Lite2 => (11, 12),
    }
}

/// Returns the channels of a stage: the nearest multiple of eight that is at least nine tenths.
fn channels_of(size: EfficientNetLiteSize, channels: usize) -> usize {
    let wanted = channels * tenths(size).0;
    let nearest = ((wanted + 40) / 80 * 8).max(8);
    if nearest * 100 < wanted * 9 { nearest + 8 } else { nearest }
}

/// Returns the blocks of a stage; the first and the last stage are never deeper.
fn blocks_of(size: EfficientNetLiteSize, stage: usize, blocks: usize) -> usize {
    let is_fixed = stage == 0 || stage == STAGES.len() - 1;
    if is_fixed { blocks } else { (blocks * tenths(size).1).div_ceil(10) }
}

#[derive(Debug)]
pub struct EfficientNetLite {
    pub stem: ConvNorm,
    pub blocks: Vec<InvertedResidual>,
    pub head: ConvNorm,
    pub classifier: Linear,
}

/// An inverted residual block: a widening 1×1 convolution, a depthwise one, and a narrowing 1×1 one.
#[derive(Debug)]
pub struct InvertedResidual {
    /// The widening convolution, if any.
    pub widen: Option<ConvNorm>,
    pub depthwise: ConvNorm,
    pub narrow: ConvNorm,
    /// Whether the input is added to the output.
    pub adds_input: bool,
}

impl EfficientNetLite {
    /// Declares the layers for `classes` classes.
    pub fn new(size: EfficientNetLiteSize, classes: usize, builder: &mut LayoutBuilder) -> Self {
        let shape = ConvShape { from: 3, to: STEM, side: 3, stride: 2, depthwise: false };
        let stem = layer(builder, "conv_stem", "bn1", shape);
        let mut from = STEM;
        let mut blocks = Vec::new();
        for (stage, (side, stride, channels, count)) in STAGES.into_iter().enumerate() {
            let to = channels_of(size, channels);
            for n in 0..blocks_of(size, stage, count) {
                let stride = if n == 0 { stride } else { 1 };
                let expansion = if stage == 0 { 1 } else { EXPANSION };
                let name = format!("blocks.{stage}.{n}");
                let inner =
                    ConvShape { from: from * expansion, to: from * expansion, side, stride, depthwise: true };
                blocks.push(InvertedResidual::new(&name, from, inner, to, builder));
                from = to;
            }
        }
        let shape = ConvShape { from, to: HEAD, side: 1, stride: 1, depthwise: false };
        let head = layer(builder, "conv_head", "bn2", shape);
        let classifier = builder.classifier("classifier", HEAD, classes);
        Self { stem, blocks, head, classifier }
    }

    /// Applies the network to images, (rows, 3, height, width).
    pub fn forward<O: Operations>(
        &self,
        images: &O::Value,
        operations: &mut O,
    ) -> Result<NetworkOutput<O::Value>, O::Error> {
        let x = operations.conv_norm(images, &self.stem)?;
        let mut x = operations.relu6(x)?;
        for block in &self.blocks {
            x = block.forward(&x, operations)?;
        }
        let x = operations.conv_norm(&x, &self.head)?;
        let x = operations.relu6(x)?;
        let features = operations.mean_of_pixels(&x)?;
        let logits = operations.linear(&features, &self.classifier)?;
        Ok(NetworkOutput { logits, features })
    }
}

impl InvertedResidual {
    fn new(name: &str, from: usize, inner: ConvShape, to: usize, builder: &mut LayoutBuilder) -> Self {
        // A block that does not widen has one convolution less, and timm counts from one in both cases.
        let widens = inner.from != from;
        let outer = |from, to| ConvShape { from, to, side: 1, stride: 1, depthwise: false };
        let widen = widens.then(|| {
            let names = (format!("{name}.conv_pw"), format!("{name}.bn1"));
            layer(builder, &names.0, &names.1, outer(from, inner.from))
        });
        let [inner_norm, outer_norm] = if widens { ["bn2", "bn3"] } else { ["bn1", "bn2"] };
        let narrow = if widens { "conv_pwl" } else { "conv_pw" };
        Self {
            widen,
            depthwise: layer(builder, &format!("{name}.conv_dw"), &format!("{name}.{inner_norm}"), inner),
            narrow: layer(
                builder,
                &format!("{name}.{narrow}"),
                &format!("{name}.{outer_norm}"),
                outer(inner.to, to),
            ),
            adds_input: inner.stride == 1 && from == to,
        }
    }

    fn forward<O: Operations>(&self, x: &O::Value, operations: &mut O) -> Result<O::Value, O::Error> {
        let wide = match &self.widen {
            Some(widen) => {
                let wide = operations.conv_norm(x, widen)?;
                Some(operations.relu6(wide)?)
            }
            None => None,
        };
        let inner = operations.conv_norm(wide.as_ref().unwrap_or(x), &self.depthwise)?;
        let inner = operations.relu6(inner)?;
        let out = operations.conv_norm(&inner, &self.narrow)?;
        if self.adds_input { operations.add(out, x) } else { Ok(out) }
    }
}

fn layer(builder: &mut LayoutBuilder, conv: &str, norm: &str, shape: ConvShape) -> ConvNorm {
    let padding = if shape.stride == 1 { Padding::around(shape.side) } else { Padding::Same };
    let conv = Conv { padding, ..builder.conv(conv, shape, false) };
    let norm = builder.batch_norm(norm, shape.to, MOMENTUM, EPSILON);
    builder.conv_norm(conv, norm)
}
