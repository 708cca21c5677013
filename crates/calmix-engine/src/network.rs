//! Networks: images in, logits and pooled features out.
//!
//! A network here is a description: which layers, under which names. Its weights are elsewhere
//! (one flat buffer), so that the live weights and their average run through the same code.

mod efficientnet_lite;
mod head;
pub(crate) mod layer;
mod layout;
mod resnet;
mod wide_resnet;

use std::fmt;
use std::str::FromStr;

use calmix_core::settings::{self, Form, SettingType, choice};
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

pub use layout::{Init, Layout, Parameter, StatisticsLayer};

pub(crate) use layout::{ParameterId, Region, StatisticsId};

use crate::weights::{self, WeightsError};

use efficientnet_lite::{EfficientNetLite, EfficientNetLiteSize};
pub use head::HeadKind;
use head::{HeadLayers, HeadShape};
use layer::Pass;
use layout::LayoutBuilder;
use resnet::ResNet50;
use wide_resnet::{WideResNet, WideResNetShape};

/// A network by name: `wrn-28-2`, `wrn-37-2`; under timm's names `resnet50`, `tf_efficientnet_lite0`.
///
/// ```
/// use calmix_engine::network::{Architecture, FirstBlock, Network};
///
/// let network = Network::new("wrn-28-2".parse()?, FirstBlock::Google, 10);
/// assert_eq!(network.layout().len(), 1_467_626);
/// # Ok::<(), calmix_engine::network::UnknownArchitecture>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Architecture(ArchitectureKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ArchitectureKind {
    WideResNet(WideResNetShape),
    ResNet50,
    EfficientNetLite(EfficientNetLiteSize),
    Head(HeadShape),
}

choice! {
    /// What the first block of the later stages of a Wide ResNet reads.
    FirstBlock = Google {
        /// The main path begins with the activated input, as in Google's code.
        ///
        /// The shortcut begins with the raw one.
        Google = "google",
        /// The main path begins with the raw input, as in every port to PyTorch.
        ///
        /// So does the shortcut: for weights from there.
        Torch = "torch",
    }
}

choice! {
    /// Which convolution of a bottleneck of ResNet-50 halves the image.
    BottleneckStride = Middle {
        /// The 3×3 in the middle, as in torchvision and timm.
        Middle = "3x3",
        /// The first 1×1, as in the paper and in Keras: for weights from there.
        First = "1x1",
    }
}

/// Not the name of a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no network: try wrn-28-2, wrn-28-8, wrn-37-2 (four stages, for images of 96 pixels), resnet50, \
     tf_efficientnet_lite0, tf_efficientnet_lite1, tf_efficientnet_lite2, or a small one such as wrn-10-1; the depth of a \
     Wide ResNet is 1 + 3·(2n + 1) or 1 + 4·(2n + 1)"
)]
pub struct UnknownArchitecture(String);

/// What a network says about a batch: one row an image, in f32.
#[derive(Debug)]
pub(crate) struct Output {
    /// C numbers a row.
    pub(crate) logits: Tensor,
    /// What the classifier reads: pooled, D numbers a row.
    pub(crate) features: Tensor,
}

/// A network's layers.
#[derive(Debug)]
pub struct Network {
    layers: NetworkLayers,
    layout: Layout,
    vector_width: Option<usize>,
    channels_per_pixel: usize,
}

#[derive(Debug)]
enum NetworkLayers {
    WideResNet(WideResNet),
    ResNet50(ResNet50),
    EfficientNetLite(EfficientNetLite),
    Head(HeadLayers),
}

impl SettingType for Architecture {
    fn shape() -> settings::Shape {
        settings::Shape::Value(settings::Kind::Form(Form {
            expected: "a network: wrn-10-1, wrn-10-2, wrn-16-2, wrn-28-2, wrn-28-8, wrn-37-2, resnet50 or \
                       tf_efficientnet_lite0, 1 or 2",
            pattern: "^(wrn-[0-9]+-[0-9]+|resnet-?50|tf_efficientnet_lite[012])$",
            has: |text| text.parse::<Architecture>().is_ok(),
        }))
    }
}

impl Architecture {
    /// The networks whose published weights have timm's names.
    pub fn timm() -> impl Iterator<Item = Self> {
        let lite = EfficientNetLiteSize::ALL.map(ArchitectureKind::EfficientNetLite);
        lite.into_iter().chain([ArchitectureKind::ResNet50]).map(Self)
    }

    /// Whether it has bottlenecks, whose stride can be in one of two convolutions.
    pub fn has_bottlenecks(self) -> bool {
        self.0 == ArchitectureKind::ResNet50
    }

    /// Whether it is one of the EfficientNet-Lites.
    pub fn is_efficient_net_lite(self) -> bool {
        matches!(self.0, ArchitectureKind::EfficientNetLite(_))
    }

    /// What the running statistics of its BatchNormLayer take of each batch by themselves.
    pub fn norm_momentum(self) -> f64 {
        match self.0 {
            ArchitectureKind::WideResNet(_) => wide_resnet::MOMENTUM,
            ArchitectureKind::ResNet50 => resnet::MOMENTUM,
            ArchitectureKind::EfficientNetLite(_) => efficientnet_lite::MOMENTUM,
            // It has no batch normalisation.
            ArchitectureKind::Head(_) => 0.0,
        }
    }

    /// A head on vectors of so many features.
    pub fn head(kind: HeadKind, width: usize) -> Self {
        Self(ArchitectureKind::Head(HeadShape { kind, width }))
    }

    /// How many numbers a row of a batch has, where rows are vectors.
    pub fn vector_width(self) -> Option<usize> {
        match self.0 {
            ArchitectureKind::Head(shape) => Some(shape.width),
            _ => None,
        }
    }
}

impl Network {
    /// The network of that name for `classes` classes.
    pub fn new(architecture: Architecture, first: FirstBlock, classes: usize) -> Self {
        let mut builder = LayoutBuilder::default();
        let layers = match architecture.0 {
            ArchitectureKind::WideResNet(shape) => {
                NetworkLayers::WideResNet(WideResNet::new(shape, first, classes, &mut builder))
            }
            ArchitectureKind::ResNet50 => NetworkLayers::ResNet50(ResNet50::new(classes, &mut builder)),
            ArchitectureKind::EfficientNetLite(size) => {
                NetworkLayers::EfficientNetLite(EfficientNetLite::new(size, classes, &mut builder))
            }
            ArchitectureKind::Head(shape) => {
                NetworkLayers::Head(HeadLayers::new(shape, classes, &mut builder))
            }
        };
        let channels_per_pixel = match architecture.0 {
            ArchitectureKind::WideResNet(shape) => shape.channels_per_pixel(),
            ArchitectureKind::ResNet50 => resnet::CHANNELS_PER_PIXEL,
            ArchitectureKind::EfficientNetLite(_) => efficientnet_lite::CHANNELS_PER_PIXEL,
            // It reads no pixels.
            ArchitectureKind::Head(_) => 0,
        };
        Self { layers, layout: builder.layout, vector_width: architecture.vector_width(), channels_per_pixel }
    }

    pub(crate) fn vector_width(&self) -> Option<usize> {
        self.vector_width
    }

    /// Numbers of its widest activations for each pixel of an image: what the memory of a pass grows with.
    pub(crate) fn channels_per_pixel(&self) -> usize {
        self.channels_per_pixel
    }

    /// The same network with the stride of its bottlenecks there, if it has any. Names and shapes do not depend on it.
    #[must_use]
    pub fn with_stride(mut self, stride: BottleneckStride) -> Self {
        if let NetworkLayers::ResNet50(layers) = &mut self.layers {
            layers.stride_in(stride);
        }
        self
    }

    /// Its parameters and statistics.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of the longest file of weights that can be of this network.
    pub fn longest_weights(&self) -> u64 {
        weights::longest(&self.layout)
    }

    /// Refuses a safetensors file that does not hold this network's backbone; its classifier may be any or none.
    ///
    /// # Errors
    /// If it is not safetensors, or names, shapes or types differ.
    pub fn check_backbone(&self, file: &[u8]) -> Result<(), WeightsError> {
        weights::check_backbone(&self.layout, file)
    }

    /// Images are (rows, 3, height, width), channels-last, in the precision of the pass; vectors (rows, width).
    pub(crate) fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        match &self.layers {
            NetworkLayers::WideResNet(layers) => layers.forward(images, pass),
            NetworkLayers::ResNet50(layers) => layers.forward(images, pass),
            NetworkLayers::EfficientNetLite(layers) => layers.forward(images, pass),
            NetworkLayers::Head(layers) => layers.forward(images, pass),
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ArchitectureKind::WideResNet(WideResNetShape { depth, width, .. }) => {
                write!(f, "wrn-{depth}-{width}")
            }
            ArchitectureKind::ResNet50 => f.write_str("resnet50"),
            ArchitectureKind::EfficientNetLite(size) => f.write_str(size.name()),
            ArchitectureKind::Head(shape) => shape.fmt(f),
        }
    }
}

impl FromStr for Architecture {
    type Err = UnknownArchitecture;

    fn from_str(name: &str) -> Result<Self, UnknownArchitecture> {
        let wide = || {
            let (depth, width) = name.strip_prefix("wrn-")?.split_once('-')?;
            let (depth, width) = (depth.parse().ok()?, width.parse().ok()?);
            // Deeper or wider than anything published is a typing error, and would take all memory.
            let sane = depth <= 1_000 && (1..=100).contains(&width);
            sane.then(|| WideResNetShape::new(depth, width)).flatten().map(ArchitectureKind::WideResNet)
        };
        let kind = match name {
            // The second is what calmix called it before it took timm's names.
            "resnet50" | "resnet-50" => Some(ArchitectureKind::ResNet50),
            _ => EfficientNetLiteSize::named(name)
                .map(ArchitectureKind::EfficientNetLite)
                .or_else(|| HeadShape::named(name).map(ArchitectureKind::Head))
                .or_else(wide),
        };
        kind.map(Self).ok_or_else(|| UnknownArchitecture(name.to_owned()))
    }
}

impl TryFrom<String> for Architecture {
    type Error = UnknownArchitecture;

    fn try_from(name: String) -> Result<Self, UnknownArchitecture> {
        name.parse()
    }
}

impl From<Architecture> for String {
    fn from(architecture: Architecture) -> Self {
        architecture.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str, classes: usize) -> Layout {
        Network::new(name.parse().unwrap(), FirstBlock::Google, classes).layout
    }

    #[test]
    fn as_many_parameters_as_the_peers_have() {
        assert_eq!(layout("wrn-28-2", 10).len(), 1_467_626);
        assert_eq!(layout("wrn-28-8", 100).len(), 23_401_028);
        assert_eq!(layout("wrn-37-2", 10).len(), 5_929_450);
        // torchvision's count of resnet50.
        assert_eq!(layout("resnet50", 1000).len(), 25_557_032);
        // timm's.
        assert_eq!(layout("tf_efficientnet_lite0", 1000).len(), 4_652_008);
        assert_eq!(layout("tf_efficientnet_lite1", 1000).len(), 5_416_680);
        assert_eq!(layout("tf_efficientnet_lite2", 1000).len(), 6_092_072);
    }

    #[test]
    fn names_of_networks() {
        for name in ["wrn-10-1", "wrn-10-2", "wrn-16-2", "wrn-28-2", "wrn-28-8", "wrn-37-2", "resnet50"] {
            assert_eq!(name.parse::<Architecture>().unwrap().to_string(), name);
        }
        let lite: Architecture = "tf_efficientnet_lite2".parse().unwrap();
        assert_eq!(lite.to_string(), "tf_efficientnet_lite2");
        assert_eq!("resnet-50".parse::<Architecture>().unwrap().to_string(), "resnet50");
        for name in
            ["", "wrn", "wrn-28", "wrn-30-2", "wrn-28-0", "wrn-28-2-1", "wrn--28-2", "WRN-28-2", "resnet51"]
        {
            assert!(name.parse::<Architecture>().is_err(), "{name}");
        }
        assert!("wrn-28-99999999".parse::<Architecture>().is_err());
    }

    #[test]
    fn names_of_parameters_are_unique_and_those_of_the_peers() {
        for name in ["wrn-16-2", "wrn-37-2", "resnet50", "tf_efficientnet_lite0"] {
            let layout = layout(name, 10);
            let mut names: Vec<_> = layout.parameters.iter().map(|p| p.name.as_str()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        let wide = layout("wrn-37-2", 10);
        for name in
            ["conv1.bias", "block1.layer.0.convShortcut.weight", "block4.layer.3.bn2.bias", "fc.weight"]
        {
            assert!(wide.parameters.iter().any(|p| p.name == name), "{name}");
        }
        let deep = layout("resnet50", 10);
        for name in ["layer1.0.downsample.0.weight", "layer4.2.bn3.weight", "bn1.weight", "fc.bias"] {
            assert!(deep.parameters.iter().any(|p| p.name == name), "{name}");
        }
    }
}
