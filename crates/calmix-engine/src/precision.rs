//! The arithmetic policy: what is kept in how many bits.
//!
//! Convolutions and activations of a training step run in the chosen precision, those of an evaluation in f32. Master weights, BatchNorm's parameters and
//! statistics, the classifier, logits, losses, the optimiser and the average of the weights are f32 in all of
//! them.

use calmix_dist::gpu::compute_capability;
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::device::Device;

/// The precision of convolutions and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits everywhere.
    F32,
    /// bfloat16: the range of f32, so that gradients need no scaling.
    Bf16,
    /// IEEE half, with a [scaled loss](crate::loss_scale): for GPUs without bfloat16.
    F16,
}

impl Precision {
    /// The fastest one that the device computes in hardware.
    pub fn best(device: Device) -> Self {
        match device {
            Device::Cpu if processor_has_bf16() => Self::Bf16,
            Device::Cpu => Self::F32,
            Device::Cuda(gpu) => Self::of_capability(compute_capability(gpu), |p| p.convolves_on(device)),
            Device::Mps => {
                [Self::Bf16, Self::F16].into_iter().find(|p| p.convolves_on(device)).unwrap_or(Self::F32)
            }
        }
    }

    /// The fastest one for a GPU of this compute capability, among those in which a convolution runs there.
    ///
    /// Tensor cores came with 7.0, bfloat16 in them with 8.0; older GPUs run bfloat16 too, but far slower than f32. Where
    /// the capability is not known (ROCm), f16, which has been in hardware for longest.
    fn of_capability(capability: Option<(u32, u32)>, convolves: impl Fn(Self) -> bool) -> Self {
        let candidates: &[Self] = match capability {
            Some(known) if known >= (8, 0) => &[Self::Bf16, Self::F16],
            Some(known) if known < (7, 0) => &[],
            _ => &[Self::F16],
        };
        candidates.iter().copied().find(|&precision| convolves(precision)).unwrap_or(Self::F32)
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
            Self::F16 => Kind::Half,
        }
    }

    /// Whether a convolution in this precision runs there at all.
    fn convolves_on(self, device: Device) -> bool {
        let options = (self.kind(), device.torch());
        let tried = Tensor::f_zeros([1, 8, 8, 8], options).and_then(|x| {
            let w = Tensor::f_zeros([8, 8, 3, 3], options)?;
            x.f_conv2d(&w, None::<&Tensor>, [1, 1], [1, 1], [1, 1], 1)?.f_sum(Kind::Float)
        });
        tried.is_ok()
    }
}

fn processor_has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("bf16")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_is_for_gpus_that_have_it_in_hardware() {
        use Precision::{Bf16, F16, F32};
        let cases = [
            (Some((9, 0)), Bf16),
            (Some((8, 0)), Bf16),
            (Some((7, 5)), F16),
            (Some((7, 0)), F16),
            (Some((6, 1)), F32),
            (None, F16),
        ];
        for (capability, best) in cases {
            assert_eq!(Precision::of_capability(capability, |_| true), best, "{capability:?}");
            assert_eq!(Precision::of_capability(capability, |_| false), F32, "{capability:?}");
        }
        assert_eq!(Precision::of_capability(Some((8, 6)), |precision| precision == F16), F16);
    }
}
