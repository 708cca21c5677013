//! Where the arithmetic runs: `cpu`, `cuda:N` or `mps`, by name, at run time.

use std::fmt;
use std::str::FromStr;

use calmix_dist::gpu::GpuFlags;
use serde::{Deserialize, Serialize};

/// A device by name.
///
/// ```
/// use calmix_engine::device::Device;
///
/// assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
/// assert_eq!(Device::Cuda(1).to_string(), "cuda:1");
/// assert!(Device::Cpu.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The processor.
    Cpu,
    /// A GPU through CUDA (or ROCm, which libtorch gives the same name).
    Cuda(usize),
    /// The GPU of an Apple processor.
    Mps,
}

/// A device that is not one, or not here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Not the name of a device.
    #[error("`{0}` is no device: try cpu, cuda, cuda:1 or mps")]
    Name(String),
    /// A device that this machine or this libtorch does not have.
    #[error("there is no {asked} here; there is {}", list(.here))]
    Missing {
        /// What was asked for.
        asked: Device,
        /// What there is.
        here: Vec<Device>,
    },
}

fn list(devices: &[Device]) -> String {
    devices.iter().map(Device::to_string).collect::<Vec<_>>().join(", ")
}

impl Device {
    /// The devices of this machine that this libtorch can use, the fastest kind first.
    pub fn all() -> Vec<Self> {
        let mps = tch::utils::has_mps().then_some(Self::Mps);
        (0..Self::visible_gpus()).map(Self::Cuda).chain(mps).chain([Self::Cpu]).collect()
    }

    /// Makes sure that it is here.
    ///
    /// # Errors
    /// If it is not, with what there is.
    pub fn check(self) -> Result<(), DeviceError> {
        let here = Self::all();
        if here.contains(&self) { Ok(()) } else { Err(DeviceError::Missing { asked: self, here }) }
    }

    /// The device of one of several processes on a machine: each takes the GPU of its local rank. Where a launcher shows
    /// every process a GPU of its own and no other (`srun --gpus-per-task=1`), that one is number 0 for all of them.
    #[must_use]
    pub fn of_local_rank(self, rank: usize, visible: usize) -> Self {
        match self {
            Self::Cuda(_) if visible == 1 => Self::Cuda(0),
            Self::Cuda(_) => Self::Cuda(rank),
            other => other,
        }
    }

    /// How many GPUs this process sees.
    pub fn visible_gpus() -> usize {
        usize::try_from(tch::Cuda::device_count()).unwrap_or(0)
    }

    /// How a GPU has to compute so that a run can be repeated to the bit; `None` for other devices.
    ///
    /// Evaluations and `train.precision = "f32"` mean f32, so TF32, which libtorch allows convolutions unless told
    /// otherwise, is off.
    pub fn gpu_flags(self) -> Option<GpuFlags> {
        let flags = GpuFlags { benchmark: false, deterministic: true, tf32: false };
        matches!(self, Self::Cuda(_)).then_some(flags)
    }

    /// As the binding calls it.
    pub fn torch(self) -> tch::Device {
        match self {
            Self::Cpu => tch::Device::Cpu,
            Self::Cuda(n) => tch::Device::Cuda(n),
            Self::Mps => tch::Device::Mps,
        }
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
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Name(name.to_owned());
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
    type Error = DeviceError;

    fn try_from(name: String) -> Result<Self, DeviceError> {
        name.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

/// How many threads the arithmetic on the processor uses; results depend on it in their last bits.
///
/// More than there are free cores is far slower than fewer: libtorch's threads wait for each other by spinning.
pub fn set_threads(threads: usize) {
    tch::set_num_threads(i32::try_from(threads.max(1)).unwrap_or(i32::MAX));
}

/// The version of libtorch that this was built with; no other is accepted.
pub const LIBTORCH: &str = env!("CALMIX_LIBTORCH_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(17), Device::Mps] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cuda:1:2"] {
            assert_eq!(name.parse::<Device>(), Err(DeviceError::Name(name.to_owned())));
        }
    }

    #[test]
    fn each_process_takes_a_gpu_of_its_own() {
        let gpu = |rank, visible| Device::Cuda(0).of_local_rank(rank, visible);
        assert_eq!([0, 1, 7].map(|rank| gpu(rank, 8)), [0, 1, 7].map(Device::Cuda));
        assert_eq!([0, 1, 7].map(|rank| gpu(rank, 1)), [0; 3].map(Device::Cuda));
        // More processes than GPUs: `check` names the missing one.
        assert_eq!(gpu(2, 2), Device::Cuda(2));
        assert_eq!(Device::Cpu.of_local_rank(3, 1), Device::Cpu);
        assert_eq!(Device::Mps.of_local_rank(3, 0), Device::Mps);
    }

    #[test]
    fn a_gpu_repeats_its_bits() {
        let flags = GpuFlags { benchmark: false, deterministic: true, tf32: false };
        assert_eq!(Device::Cuda(1).gpu_flags(), Some(flags));
        assert_eq!((Device::Cpu.gpu_flags(), Device::Mps.gpu_flags()), (None, None));
    }

    #[test]
    fn a_missing_device_is_told_with_what_there_is() {
        let error = Device::Cuda(4095).check().unwrap_err().to_string();
        assert!(
            error.starts_with("there is no cuda:4095 here; there is ") && error.ends_with("cpu"),
            "{error}"
        );
    }
}
