//! Stochastic gradient descent over one flat buffer, as `torch.optim.SGD` does it per parameter, and loss scaling.

use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

/// SGD with momentum and weight decay. Vectors (BatchNorm, biases) are not decayed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sgd {
    /// The momentum: the share of the previous update direction that is kept.
    pub momentum: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    pub weight_decay: f64,
}

impl Default for Sgd {
    /// Returns the values that published semi-supervised methods use on CIFAR-10.
    fn default() -> Self {
        Self { momentum: 0.9, nesterov: true, weight_decay: 5e-4 }
    }
}

impl Sgd {
    /// Takes one step: `g += decay·p; v = momentum·v + g; p −= rate·(g + momentum·v)`; without Nesterov, `p −= rate·v`. Only the
    /// first `decayed` numbers are decayed. The gradient is overwritten.
    pub(crate) fn step(
        self,
        rate: f64,
        parameters: &mut Tensor,
        velocity: &mut Tensor,
        gradient: &mut Tensor,
        decayed: i64,
    ) -> Result<(), TchError> {
        let factor = |value: f64| Tensor::f_from_slice(&[value as f32])?.f_to_device(parameters.device());
        let (decay, momentum, against) = (factor(self.weight_decay)?, factor(self.momentum)?, factor(-rate)?);
        if self.weight_decay != 0.0 {
            let _ =
                gradient.f_narrow(0, 0, decayed)?.f_addcmul_(&parameters.f_narrow(0, 0, decayed)?, &decay)?;
        }
        let _ = velocity.f_mul_(&momentum)?.f_add_(gradient)?;
        if self.nesterov {
            let _ = gradient.f_addcmul_(velocity, &momentum)?;
            let _ = parameters.f_addcmul_(gradient, &against)?;
        } else {
            let _ = parameters.f_addcmul_(velocity, &against)?;
        }
        Ok(())
    }
}

/// Loss scaling for f16, which cannot represent many small gradients; in f32 and bf16 the factor stays at one.
///
/// The loss is multiplied before the backward pass, and the gradient divided after it. If the gradient overflows, the factor is
/// halved and the step is skipped; after many steps without overflow, the factor doubles (Micikevicius et al. 2018, with the
/// constants of PyTorch's `GradScaler`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossScale {
    /// The factor of the loss: a power of two, so that scaling is exact.
    pub factor: f64,
    /// The number of steps since the factor changed.
    pub held: u32,
    /// Whether the factor adapts.
    pub dynamic: bool,
}

impl LossScale {
    /// The number of steps without overflow after which the factor doubles.
    const GROWTH_INTERVAL: u32 = 2_000;

    /// The scale for precisions with the range of f32.
    pub const ONE: Self = Self { factor: 1.0, held: 0, dynamic: false };

    /// The scale for f16.
    pub const HALF: Self = Self { factor: 65_536.0, held: 0, dynamic: true };

    /// Records a step with a finite gradient.
    pub fn record_finite(&mut self) {
        if self.dynamic {
            self.held += 1;
            if self.held == Self::GROWTH_INTERVAL {
                *self = Self { factor: self.factor * 2.0, held: 0, dynamic: true };
            }
        }
    }

    /// Records a step with a non-finite gradient. Returns whether a smaller factor can help: if not, the training diverges and
    /// the precision is not the cause.
    pub fn record_overflow(&mut self) -> bool {
        let lower = self.dynamic && self.factor > 1.0;
        if lower {
            *self = Self { factor: self.factor / 2.0, held: 0, dynamic: true };
        }
        lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_scale_halves_at_once_and_doubles_late() {
        let mut scale = LossScale::HALF;
        assert!(scale.record_overflow());
        assert_eq!(scale.factor, 32_768.0);
        for _ in 0..1_999 {
            scale.record_finite();
        }
        assert_eq!(scale.factor, 32_768.0);
        scale.record_finite();
        assert_eq!((scale.factor, scale.held), (65_536.0, 0));
    }

    #[test]
    fn loss_scale_gives_up_at_one() {
        let mut scale = LossScale::HALF;
        assert_eq!((0..40).filter(|_| scale.record_overflow()).count(), 16);
        let mut fixed = LossScale::ONE;
        fixed.record_finite();
        assert!(!fixed.record_overflow());
        assert_eq!(fixed, LossScale::ONE);
    }
}
