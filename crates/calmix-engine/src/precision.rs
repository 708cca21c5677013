//! The precision policy: which values have how many bits.
//!
//! Convolutions and activations of a training step run in the chosen precision, those of an evaluation in f32. Master weights,
//! BatchNorm's parameters and statistics, the classifier, logits, losses, the optimiser and the EMA of the weights are always
//! f32.

use calmix_dist::gpu::compute_capability;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use tch::{Kind, Tensor};

use crate::device;

/// Returns the fastest precision that the device computes in hardware.
pub fn best(device: Device) -> Precision {
    match device {
        Device::Cpu if processor_has_bf16() => Precision::Bf16,
        Device::Cpu => Precision::F32,
        Device::Cuda(gpu) => of_capability(compute_capability(gpu), |p| convolves(p, device)),
        Device::Mps => [Precision::Bf16, Precision::F16]
            .into_iter()
            .find(|&p| convolves(p, device))
            .unwrap_or(Precision::F32),
    }
}

/// Returns the fastest precision for a GPU of this compute capability, among those in which it can run a convolution.
///
/// Tensor cores exist since 7.0, and support bfloat16 since 8.0; older GPUs run bfloat16 too, but far slower than f32. If the
/// capability is unknown (ROCm), f16 is chosen, which hardware has supported for longest.
fn of_capability(capability: Option<(u32, u32)>, convolves: impl Fn(Precision) -> bool) -> Precision {
    let candidates: &[Precision] = match capability {
        Some(known) if known >= (8, 0) => &[Precision::Bf16, Precision::F16],
        Some(known) if known < (7, 0) => &[],
        _ => &[Precision::F16],
    };
    candidates.iter().copied().find(|&precision| convolves(precision)).unwrap_or(Precision::F32)
}

/// Converts to the number type of `tch`.
pub(crate) fn kind(precision: Precision) -> Kind {
    match precision {
        Precision::F32 => Kind::Float,
        Precision::Bf16 => Kind::BFloat16,
        Precision::F16 => Kind::Half,
    }
}

/// Returns whether the device can run a convolution in this precision.
fn convolves(precision: Precision, device: Device) -> bool {
    let options = (kind(precision), device::torch(device));
    let tried = Tensor::f_zeros([1, 8, 8, 8], options).and_then(|x| {
        let w = Tensor::f_zeros([8, 8, 3, 3], options)?;
        x.f_conv2d(&w, None::<&Tensor>, [1, 1], [1, 1], [1, 1], 1)?.f_sum(Kind::Float)
    });
    tried.is_ok()
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
            assert_eq!(of_capability(capability, |_| true), best, "{capability:?}");
            assert_eq!(of_capability(capability, |_| false), F32, "{capability:?}");
        }
        assert_eq!(of_capability(Some((8, 6)), |precision| precision == F16), F16);
    }
}
