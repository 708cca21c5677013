//! The devices of this machine, and the settings with which libtorch computes on them.

use calmix_dist::gpu::GpuFlags;
use calmix_recipe::device::Device;

use crate::error::EngineError;

/// Lists the devices of this machine that this libtorch can use, the fastest kind first.
pub fn all() -> Vec<Device> {
    let mps = tch::utils::has_mps().then_some(Device::Mps);
    (0..visible_gpus()).map(Device::Cuda).chain(mps).chain([Device::Cpu]).collect()
}

/// Returns the device that `auto` selects: the first GPU, or else the CPU.
pub fn fastest() -> Device {
    all().first().copied().unwrap_or(Device::Cpu)
}

/// Checks that a device is available.
///
/// # Errors
/// If it is not; the error lists the available devices.
pub fn check(device: Device) -> Result<(), EngineError> {
    let available = all();
    if available.contains(&device) {
        Ok(())
    } else {
        Err(EngineError::NoDevice { requested: device, available })
    }
}

/// Returns the number of GPUs that are visible to this process.
pub fn visible_gpus() -> usize {
    usize::try_from(tch::Cuda::device_count()).unwrap_or(0)
}

/// Returns the settings with which a GPU computes reproducibly to the bit; `None` for other devices.
///
/// Evaluations and `train.precision = "f32"` mean f32, so TF32, which libtorch allows for convolutions by default, is off.
pub fn gpu_flags(device: Device) -> Option<GpuFlags> {
    let flags = GpuFlags { benchmark: false, deterministic: true, tf32: false };
    matches!(device, Device::Cuda(_)).then_some(flags)
}

/// Converts to the device type of `tch`.
pub fn torch(device: Device) -> tch::Device {
    match device {
        Device::Cpu => tch::Device::Cpu,
        Device::Cuda(n) => tch::Device::Cuda(n),
        Device::Mps => tch::Device::Mps,
    }
}

/// Sets the number of threads of CPU arithmetic. Results depend on it in their last bits.
///
/// More threads than free cores are far slower than fewer: libtorch's threads spin while they wait for each other.
pub fn set_threads(threads: usize) {
    tch::set_num_threads(i32::try_from(threads.max(1)).unwrap_or(i32::MAX));
}

/// The version of libtorch that calmix was built with, the only one that is accepted.
pub const LIBTORCH: &str = env!("CALMIX_LIBTORCH_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_repeats_its_bits() {
        let flags = GpuFlags { benchmark: false, deterministic: true, tf32: false };
        assert_eq!(gpu_flags(Device::Cuda(1)), Some(flags));
        assert_eq!((gpu_flags(Device::Cpu), gpu_flags(Device::Mps)), (None, None));
    }

    #[test]
    fn missing_device_error_lists_available_ones() {
        let error = check(Device::Cuda(4095)).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no cuda:4095 here; available: ") && error.ends_with("cpu"),
            "{error}"
        );
    }
}
