//! Properties of GPUs that libtorch has and `tch` does not expose: the functions of `shim/gpu.h`.
//!
//! Tests only check that the flags are set; no machine available to the project has a GPU.

use std::ffi::c_int;

/// The settings of libtorch's libraries for NVIDIA GPUs, in the layout of `CalmixGpuFlags`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuFlags {
    /// Whether cuDNN times its algorithms and uses the fastest, which may differ between processes.
    pub benchmark: bool,
    /// Whether cuDNN only uses algorithms with reproducible bits.
    pub deterministic: bool,
    /// Whether convolutions and products of f32 may round their inputs to a mantissa of ten bits.
    pub tf32: bool,
}

unsafe extern "C" {
    fn calmix_gpu_capability(device: c_int, major: *mut c_int, minor: *mut c_int) -> bool;
    fn calmix_gpu_set_flags(flags: GpuFlags);
    fn calmix_gpu_flags() -> GpuFlags;
}

impl GpuFlags {
    /// Sets the flags for the whole process.
    pub fn set(self) {
        // SAFETY: it sets flags of libtorch's context and throws nothing.
        unsafe { calmix_gpu_set_flags(self) }
    }

    /// Returns the flags of this process.
    pub fn current() -> Self {
        // SAFETY: as above; the function only reads.
        unsafe { calmix_gpu_flags() }
    }
}

/// Returns the compute capability of a GPU, such as (8, 0) for an A100; `None` if the CUDA runtime is not available.
pub fn compute_capability(gpu: usize) -> Option<(u32, u32)> {
    let (gpu, mut major, mut minor) = (c_int::try_from(gpu).ok()?, 0, 0);
    // SAFETY: both pointers are valid for writes during the call.
    let is_available = unsafe { calmix_gpu_capability(gpu, &raw mut major, &raw mut minor) };
    Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?)).filter(|_| is_available)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_kept() {
        for (benchmark, deterministic, tf32) in [(true, false, true), (false, true, false)] {
            let flags = GpuFlags { benchmark, deterministic, tf32 };
            flags.set();
            assert_eq!(GpuFlags::current(), flags);
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_has_no_capability() {
        assert_eq!(compute_capability(4095), None);
    }
}
