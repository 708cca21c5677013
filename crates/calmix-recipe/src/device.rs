//! The names of devices: `cpu`, `cuda:N` and `mps`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::OrAuto;
use crate::field::{Kind, Pattern, SettingType, Shape};
use crate::problem::RecipeError;

/// A device by name. Whether it is available is checked by `calmix-engine`.
///
/// ```
/// use calmix_recipe::device::Device;
///
/// assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
/// assert_eq!(Device::Cuda(1).to_string(), "cuda:1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    Cpu,
    /// A GPU through CUDA (or ROCm, which libtorch also calls CUDA), by index.
    Cuda(usize),
    /// The GPU of an Apple processor.
    Mps,
}

impl Device {
    /// Returns the device of one of several processes on a machine: the GPU with its local rank. If the launcher makes only
    /// one GPU visible to each process (`srun --gpus-per-task=1`), that GPU is number 0 for every process.
    #[must_use]
    pub fn of_local_rank(self, rank: usize, visible: usize) -> Self {
        match self {
            Self::Cuda(_) if visible == 1 => Self::Cuda(0),
            Self::Cuda(_) => Self::Cuda(rank),
            other => other,
        }
    }
}

impl SettingType for OrAuto<Device> {
    fn shape() -> Shape {
        Shape::Value(Kind::Pattern(Pattern {
            expected: "auto, cpu, cuda, cuda:N (N a number) or mps",
            regex: "^(auto|cpu|cuda(:[0-9]+)?|mps)$",
            matches: |text| text == "auto" || text.parse::<Device>().is_ok(),
        }))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
            Self::Mps => f.write_str("mps"),
        }
    }
}

impl FromStr for Device {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        let unknown = || RecipeError::of(format!("`{name}` is not a device; use cpu, cuda, cuda:1 or mps"));
        match name {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "mps" => Ok(Self::Mps),
            _ => {
                let number = name.strip_prefix("cuda:").ok_or_else(unknown)?;
                number.parse().map(Self::Cuda).map_err(|_| unknown())
            }
        }
    }
}

impl TryFrom<String> for Device {
    type Error = RecipeError;

    fn try_from(name: String) -> Result<Self, RecipeError> {
        name.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(17), Device::Mps] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cuda:1:2"] {
            assert!(name.parse::<Device>().is_err(), "{name}");
        }
    }

    #[test]
    fn each_process_takes_a_gpu_of_its_own() {
        let gpu = |rank, visible| Device::Cuda(0).of_local_rank(rank, visible);
        assert_eq!([0, 1, 7].map(|rank| gpu(rank, 8)), [0, 1, 7].map(Device::Cuda));
        assert_eq!([0, 1, 7].map(|rank| gpu(rank, 1)), [0; 3].map(Device::Cuda));
        // With more processes than GPUs, the device check reports a missing GPU.
        assert_eq!(gpu(2, 2), Device::Cuda(2));
        assert_eq!(Device::Cpu.of_local_rank(3, 1), Device::Cpu);
        assert_eq!(Device::Mps.of_local_rank(3, 0), Device::Mps);
    }
}
