//! Properties of GPUs that libtorch knows and `tch` does not expose.
//!
//! It is in this crate because this one has the project's C++. Tests only check that the flags are set; no
//! machine available to the project has a GPU.

use crate::binding;
pub use crate::binding::GpuFlags;

impl GpuFlags {
    /// Sets the flags for the whole process.
    pub fn set(self) {
        binding::set_gpu_flags(self);
    }

    /// The flags of this process.
    pub fn current() -> Self {
        binding::gpu_flags()
    }
}

/// The compute capability of a GPU, such as (8, 0) for an A100; `None` if CUDA's runtime is not available.
pub fn compute_capability(gpu: usize) -> Option<(u32, u32)> {
    binding::compute_capability(gpu)
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
