//! The functions of `shim/gpu.h`.

use std::ffi::c_int;

use crate::gpu::GpuFlags;

/// Has the layout of `CalmixGpuFlags`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Flags {
    benchmark: bool,
    deterministic: bool,
    tf32: bool,
}

unsafe extern "C" {
    fn calmix_gpu_capability(device: c_int, major: *mut c_int, minor: *mut c_int) -> bool;
    fn calmix_gpu_set_flags(flags: Flags);
    fn calmix_gpu_flags() -> Flags;
}

pub(crate) fn compute_capability(gpu: usize) -> Option<(u32, u32)> {
    let (gpu, mut major, mut minor) = (c_int::try_from(gpu).ok()?, 0, 0);
    // SAFETY: both pointers are valid for writes during the call.
    let known = unsafe { calmix_gpu_capability(gpu, &raw mut major, &raw mut minor) };
    Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?)).filter(|_| known)
}

pub(crate) fn set_gpu_flags(flags: GpuFlags) {
    let GpuFlags { benchmark, deterministic, tf32 } = flags;
    // SAFETY: it sets flags of libtorch's context and throws nothing.
    unsafe { calmix_gpu_set_flags(Flags { benchmark, deterministic, tf32 }) }
}

pub(crate) fn gpu_flags() -> GpuFlags {
    // SAFETY: as above, it only reads.
    let Flags { benchmark, deterministic, tf32 } = unsafe { calmix_gpu_flags() };
    GpuFlags { benchmark, deterministic, tf32 }
}
