//! The words of a recipe that belong to the engine: networks, devices, number formats, ways to run a step.

use std::fmt;

use calmix_engine::device::Device;
use calmix_engine::network::Architecture;
use calmix_engine::precision::Precision;
use serde::{Deserialize, Serialize};

use super::field::{Form, Kind, SettingType, Shape, Word, choice};

/// A value, or `auto`: then it is chosen at the first launch and written into the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrAuto<T> {
    /// `auto`.
    Auto(Auto),
    /// This one.
    Is(T),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// The word.
    Auto,
}

impl<T> OrAuto<T> {
    /// To be chosen.
    pub const AUTO: Self = Self::Auto(Auto::Auto);

    /// The value, or what is chosen in its place.
    pub fn or_else(self, choose: impl FnOnce() -> T) -> T {
        match self {
            Self::Auto(_) => choose(),
            Self::Is(value) => value,
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrAuto<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto(_) => f.write_str("auto"),
            Self::Is(value) => value.fmt(f),
        }
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

impl SettingType for OrAuto<Precision> {
    fn shape() -> Shape {
        const _: fn(Precision) = |every| match every {
            Precision::F32 | Precision::Bf16 | Precision::F16 => (),
        };
        Shape::Value(Kind::Word(&[
            Word { word: "auto", doc: &["The fastest one that the device computes in hardware."] },
            Word { word: "f32", doc: &["Single precision."] },
            Word { word: "bf16", doc: &["Half precision with the range of single precision."] },
            Word { word: "f16", doc: &["Half precision with a scaled loss: the released code."] },
        ]))
    }
}

impl SettingType for OrAuto<Device> {
    fn shape() -> Shape {
        Shape::Value(Kind::Form(Form {
            expected: "auto, cpu, cuda, cuda:N (N a number) or mps",
            pattern: "^(auto|cpu|cuda(:[0-9]+)?|mps)$",
            has: |text| text == "auto" || text.parse::<Device>().is_ok(),
        }))
    }
}

/// A network that is known to exist.
pub(super) fn network(name: &str) -> Architecture {
    // Every name that is written in this crate is in the test below.
    name.parse().unwrap_or_else(|_| unreachable!("{name} is the name of a network"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_precisions_are_read_as_they_are_written() {
        let json = |text: &str| format!("{text:?}");
        for text in ["auto", "cpu", "cuda:0", "cuda:13", "mps"] {
            let device: OrAuto<Device> = serde_json::from_str(&json(text)).unwrap();
            assert_eq!(
                (device.to_string(), serde_json::to_string(&device).unwrap()),
                (text.into(), json(text))
            );
        }
        for text in ["auto", "f32", "bf16", "f16"] {
            let precision: OrAuto<Precision> = serde_json::from_str(&json(text)).unwrap();
            assert_eq!(serde_json::to_string(&precision).unwrap(), json(text));
        }
        assert!(serde_json::from_str::<OrAuto<Device>>(&json("gpu")).is_err());
        assert_eq!(OrAuto::Is(Device::Mps).or_else(|| Device::Cpu), Device::Mps);
        assert_eq!(OrAuto::AUTO.or_else(|| Device::Cpu), Device::Cpu);
    }

    #[test]
    fn the_default_network_exists() {
        assert_eq!(network("wrn-28-2").to_string(), "wrn-28-2");
    }
}
