//! A value that may be chosen at the first launch.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value, or `auto`, which is resolved at the first launch and stored with the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrAuto<T> {
    /// `auto`.
    Auto(Auto),
    /// A given value.
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
    /// The value `auto`.
    pub const AUTO: Self = Self::Auto(Auto::Auto);

    /// Returns the value, or the result of `choose` for `auto`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::precision::Precision;

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
}
