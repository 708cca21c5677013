//! The names of networks and of their published variants.

pub mod efficientnet_lite;
pub mod layer;
pub mod layers;
pub mod layout;
pub mod operations;
pub mod resnet;
pub mod weights;
pub mod wide_resnet;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::field::{self, Pattern, SettingType, choice};
use crate::problem::RecipeError;

/// A network by name: `wrn-28-2` or `wrn-37-2`, or under timm's names `resnet50` or `tf_efficientnet_lite0`.
///
/// ```
/// use calmix_recipe::network::Architecture;
///
/// let network: Architecture = "wrn-28-2".parse()?;
/// assert_eq!(network.to_string(), "wrn-28-2");
/// # Ok::<(), calmix_recipe::RecipeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Architecture {
    WideResNet(WideResNetShape),
    ResNet50,
    EfficientNetLite(EfficientNetLiteSize),
}

/// The shape of WRN-d-k: a stem, stages of n blocks of two convolutions each, one shortcut convolution per stage.
///
/// The depth counts the stem, the convolutions of the blocks and the shortcuts: `d = 1 + s·(2n + 1)`, so that
/// WRN-28 has three stages of four blocks and WRN-37 four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WideResNetShape {
    depth: usize,
    width: usize,
    stages: usize,
    blocks_per_stage: usize,
}

/// The size of an EfficientNet-Lite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EfficientNetLiteSize {
    /// The smallest.
    Lite0,
    /// Deeper than Lite0.
    Lite1,
    /// Deeper and wider than Lite0.
    Lite2,
}

choice! {
    /// The form of a head on frozen features.
    HeadKind = Linear {
        /// One linear layer.
        Linear = "linear",
        /// A hidden layer of 256 units with ReLU, then a linear layer.
        Hidden = "hidden",
    }
}

choice! {
    /// The input of the first block of the later stages of a Wide ResNet.
    FirstBlock = Google {
        /// The main path starts from the activated input, as in Google's code.
        ///
        /// The shortcut starts from the raw input.
        Google = "google",
        /// The main path starts from the raw input, as in every PyTorch port.
        ///
        /// So does the shortcut. Use it for weights from such a port.
        Torch = "torch",
    }
}

choice! {
    /// Which convolution of a bottleneck of ResNet-50 halves the image.
    BottleneckStride = Middle {
        /// The 3×3 in the middle, as in torchvision and timm.
        Middle = "3x3",
        /// The first 1×1, as in the ResNet paper and in Keras; use it for weights from Keras.
        First = "1x1",
    }
}

choice! {
    /// How the output of an ONNX encoder becomes one vector per image.
    Pooling = Vector {
        /// The output is a vector per image.
        Vector = "vector",
        /// The first token, in which many transformers sum an image up.
        ClassToken = "class-token",
        /// The mean of all tokens.
        MeanOfTokens = "mean-of-tokens",
        /// The mean over the places of a map of features, as convolutional networks have it.
        MeanOfMap = "mean-of-map",
    }
}

/// The momentum of batch normalisation (the share of each batch in the running statistics) in each published network.
pub mod norm_momentum {
    /// running = 0.999·running + 0.001·batch.
    pub const WIDE_RESNET: f64 = 0.001;
    /// PyTorch's default, which torchvision's weights were trained with.
    pub const RESNET50: f64 = 0.1;
    /// timm's.
    pub const EFFICIENTNET_LITE: f64 = 0.1;
}

impl Architecture {
    /// Iterates over the networks whose published weights use timm's names.
    pub fn timm() -> impl Iterator<Item = Self> {
        let lite = EfficientNetLiteSize::ALL.map(Self::EfficientNetLite);
        lite.into_iter().chain([Self::ResNet50])
    }

    /// Returns whether it has bottlenecks, in which either of two convolutions can have the stride.
    pub fn has_bottlenecks(self) -> bool {
        self == Self::ResNet50
    }

    /// Returns whether it is an EfficientNet-Lite.
    pub fn is_efficient_net_lite(self) -> bool {
        matches!(self, Self::EfficientNetLite(_))
    }

    /// Returns the default momentum of its batch normalisation: the share of each batch in the running statistics.
    pub fn norm_momentum(self) -> f64 {
        match self {
            Self::WideResNet(_) => norm_momentum::WIDE_RESNET,
            Self::ResNet50 => norm_momentum::RESNET50,
            Self::EfficientNetLite(_) => norm_momentum::EFFICIENTNET_LITE,
        }
    }
}

impl WideResNetShape {
    /// Returns the shape of WRN-`depth`-`width`; `None` if no such network exists.
    pub fn new(depth: usize, width: usize) -> Option<Self> {
        let convolutions = depth.checked_sub(1)?;
        [3, 4].into_iter().find_map(|stages| {
            let per_stage = convolutions / stages;
            let fits = convolutions % stages == 0 && per_stage % 2 == 1 && per_stage >= 3;
            fits.then_some(Self { depth, width, stages, blocks_per_stage: per_stage / 2 })
        })
    }

    /// Parses a name such as `wrn-28-2`.
    fn named(name: &str) -> Option<Self> {
        let (depth, width) = name.strip_prefix("wrn-")?.split_once('-')?;
        let (depth, width) = (depth.parse().ok()?, width.parse().ok()?);
        // A depth or width far beyond any published one is a typo, and would exhaust memory.
        let sane = depth <= 1_000 && (1..=100).contains(&width);
        sane.then(|| Self::new(depth, width)).flatten()
    }

    /// Returns k: the first stage has 16k channels, each later stage twice as many as the one before.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns the number of stages: three, or four for larger images.
    pub fn stages(self) -> usize {
        self.stages
    }

    /// Returns n, the number of blocks per stage.
    pub fn blocks_per_stage(self) -> usize {
        self.blocks_per_stage
    }
}

impl EfficientNetLiteSize {
    /// Every size, the smallest first.
    pub const ALL: [Self; 3] = [Self::Lite0, Self::Lite1, Self::Lite2];

    /// Returns timm's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lite0 => "tf_efficientnet_lite0",
            Self::Lite1 => "tf_efficientnet_lite1",
            Self::Lite2 => "tf_efficientnet_lite2",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.name() == name)
    }
}

impl HeadKind {
    /// Returns the number of units of its hidden layer, if it has one.
    pub fn hidden(self) -> Option<usize> {
        match self {
            Self::Linear => None,
            Self::Hidden => Some(256),
        }
    }
}

impl SettingType for Architecture {
    fn shape() -> field::Shape {
        field::Shape::Value(field::Kind::Pattern(Pattern {
            expected: "a network such as wrn-10-1, wrn-10-2, wrn-16-2, wrn-28-2, wrn-28-8, wrn-37-2, resnet50 or \
                       tf_efficientnet_lite0, 1 or 2",
            regex: "^(wrn-[0-9]+-[0-9]+|resnet-?50|tf_efficientnet_lite[012])$",
            matches: |text| text.parse::<Architecture>().is_ok(),
        }))
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WideResNet(WideResNetShape { depth, width, .. }) => write!(f, "wrn-{depth}-{width}"),
            Self::ResNet50 => f.write_str("resnet50"),
            Self::EfficientNetLite(size) => f.write_str(size.name()),
        }
    }
}

fn unknown(name: &str) -> RecipeError {
    RecipeError::of(format!(
        "`{name}` is not a network; use wrn-28-2, wrn-28-8, wrn-37-2 (four stages, for images of 96 pixels), resnet50, \
         tf_efficientnet_lite0, tf_efficientnet_lite1, tf_efficientnet_lite2, or a small one such as wrn-10-1; the depth of \
         a Wide ResNet is 1 + 3·(2n + 1) or 1 + 4·(2n + 1)"
    ))
}

impl FromStr for Architecture {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        let known = match name {
            // The name `resnet-50` is from before calmix used timm's names.
            "resnet50" | "resnet-50" => Some(Self::ResNet50),
            _ => EfficientNetLiteSize::named(name)
                .map(Self::EfficientNetLite)
                .or_else(|| WideResNetShape::named(name).map(Self::WideResNet)),
        };
        known.ok_or_else(|| unknown(name))
    }
}

impl TryFrom<String> for Architecture {
    type Error = RecipeError;

    fn try_from(name: String) -> Result<Self, RecipeError> {
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
    fn depth_gives_stages_and_blocks() {
        let stages =
            |depth| WideResNetShape::new(depth, 2).map(|shape| (shape.stages, shape.blocks_per_stage));
        assert_eq!(stages(10), Some((3, 1)));
        assert_eq!(stages(16), Some((3, 2)));
        assert_eq!(stages(28), Some((3, 4)));
        assert_eq!(stages(37), Some((4, 4)));
        assert_eq!(stages(40), Some((3, 6)));
        for depth in [0, 1, 4, 5, 11, 25, 27, 30, 50] {
            assert_eq!(stages(depth), None, "{depth}");
        }
    }
}
