//! Stochastic gradient descent over one flat buffer, as `torch.optim.SGD` does it parameter by parameter.

use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

/// SGD with momentum and weight decay. Vectors (BatchNorm, biases) are not decayed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sgd {
    /// The momentum: the share of the last update direction that is kept.
    pub momentum: f64,
    /// Whether the gradient looks ahead along it (Nesterov).
    pub nesterov: bool,
    /// The weight decay.
    pub weight_decay: f64,
}

impl Default for Sgd {
    /// The values that published semi-supervised methods use on CIFAR-10.
    fn default() -> Self {
        Self { momentum: 0.9, nesterov: true, weight_decay: 5e-4 }
    }
}

impl Sgd {
    /// One step: `g += decay·p; v = momentum·v + g; p −= rate·(g + momentum·v)`, the last without `momentum·v`
    /// but with `v` in place of `g` where Nesterov is off. Only the first `decayed` numbers are decayed. The
    /// gradient is overwritten.
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
