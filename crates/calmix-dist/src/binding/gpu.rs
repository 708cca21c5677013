//! The functions of `shim/gpu.h`.

use std::ffi::c_int;

/// How libtorch's libraries for NVIDIA's GPUs compute; it has the layout of `CalmixGpuFlags`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuFlags {
    /// cuDNN times its algorithms and takes the fastest one, which may be another one in the next process.
    pub benchmark: bool,
    /// cuDNN takes only algorithms that give the same bits every time.
    pub deterministic: bool,
    /// Convolutions and products of f32 may round their inputs to ten bits of mantissa.
    pub tf32: bool,
}

unsafe extern "C" {
    fn calmix_gpu_capability(device: c_int, major: *mut c_int, minor: *mut c_int) -> bool;
    fn calmix_gpu_set_flags(flags: GpuFlags);
    fn calmix_gpu_flags() -> GpuFlags;
}

pub(crate) fn compute_capability(gpu: usize) -> Option<(u32, u32)> {
    let (gpu, mut major, mut minor) = (c_int::try_from(gpu).ok()?, 0, 0);
    // SAFETY: both pointers are valid for writes during the call.
    let known = unsafe { calmix_gpu_capability(gpu, &raw mut major, &raw mut minor) };
    Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?)).filter(|_| known)
}

pub(crate) fn set_gpu_flags(flags: GpuFlags) {
    // SAFETY: it sets flags of libtorch's context and throws nothing.
    unsafe { calmix_gpu_set_flags(flags) }
}

pub(crate) fn gpu_flags() -> GpuFlags {
    // SAFETY: as above, it only reads.
    unsafe { calmix_gpu_flags() }
}
