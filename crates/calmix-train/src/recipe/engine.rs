//! The words of a recipe that belong to the engine: networks, devices, number formats, ways to run a step.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::field::{Form, Kind, Shape, Shaped, choice};
use super::problem::UnknownWord;

choice! {
    /// A network, by depth and width.
    NetworkName {
        /// A wide residual network with one block a stage, for a CPU.
        Wrn10x1 = "wrn-10-1",
        /// The same, twice as wide.
        Wrn10x2 = "wrn-10-2",
        /// Two blocks a stage.
        Wrn16x2 = "wrn-16-2",
        /// Four blocks a stage: CIFAR-10 and SVHN in the paper.
        Wrn28x2 = "wrn-28-2",
        /// Eight times as wide: CIFAR-100 in the paper.
        Wrn28x8 = "wrn-28-8",
        /// A fourth stage, for images of 96 pixels: STL-10 in the paper.
        Wrn37x2 = "wrn-37-2",
        /// ResNet-50: ImageNet and WebVision in the paper.
        Resnet50 = "resnet-50",
    }
}

choice! {
    /// The first block of the later stages of a wide residual network.
    Block {
        /// The main path begins with the activated input, as in Google's code.
        Google = "google",
        /// The main path begins with the raw input and the first normalisation is unused, as in every port to PyTorch.
        Torch = "torch",
    }
}

choice! {
    /// The format of numbers in the forward and backward pass.
    Precision {
        /// What the device is fastest with and the training stays stable in.
        Auto = "auto",
        /// Single precision.
        F32 = "f32",
        /// Half precision with the range of single precision.
        Bf16 = "bf16",
        /// Half precision with a scaled loss: the released code.
        F16 = "f16",
    }
}

choice! {
    /// How the plan of a step is carried out.
    Step {
        /// One pass over the labelled, weak and strong rows, then one over the mixtures: Algorithm 1 to the letter.
        Joint = "joint",
        /// The plan from a pass without gradient, then one pass over what has a loss: 0.73 of the arithmetic.
        Lean = "lean",
    }
}

choice! {
    /// Over which rows batch normalisation takes its statistics.
    BatchNorm {
        /// Over the rows of a shard.
        Shard = "shard",
        /// Over all rows of a group.
        Sync = "sync",
    }
}

/// Where the arithmetic happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The first GPU if there is one, otherwise the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A CUDA device; without a number, the one that belongs to the process.
    Cuda(Option<u32>),
    /// Apple's GPU.
    Mps,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(index)) => write!(f, "cuda:{index}"),
            Self::Mps => f.write_str("mps"),
        }
    }
}

const DEVICES: &str = "auto, cpu, cuda, cuda:N (N a number) or mps";

impl FromStr for Device {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let unknown = || UnknownWord { found: text.to_owned(), expected: DEVICES };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            "mps" => Ok(Self::Mps),
            _ => {
                let index = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                // `parse` also takes a plus sign; a device is written in one way.
                let plain = index.bytes().all(|byte| byte.is_ascii_digit());
                let index = index.parse().ok().filter(|_| plain).ok_or_else(unknown)?;
                Ok(Self::Cuda(Some(index)))
            }
        }
    }
}

impl TryFrom<String> for Device {
    type Error = UnknownWord;

    fn try_from(text: String) -> Result<Self, UnknownWord> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl Shaped for Device {
    fn shape() -> Shape {
        Shape::Value(Kind::Form(Form {
            expected: DEVICES,
            pattern: "^(auto|cpu|cuda(:[0-9]+)?|mps)$",
            has: |text| text.parse::<Device>().is_ok(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for text in ["auto", "cpu", "cuda", "cuda:0", "cuda:13", "mps"] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
        for text in ["gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "CPU", "cuda:4294967296", ""] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }

    #[test]
    fn networks_are_read_by_name() {
        assert_eq!("wrn-28-2".parse(), Ok(NetworkName::Wrn28x2));
        assert_eq!(
            "vit".parse::<Block>().unwrap_err().to_string(),
            "`vit` is not known; expected one of `google` `torch`"
        );
    }
}
