//! The layers of networks on libtorch: they compute with the weights of a [`Pass`].

use calmix_recipe::network::layer::{BatchNormLayer, Conv, ConvNorm, Linear, Padding};
use tch::{Device, Kind, TchError, Tensor};

use crate::parameters::PassWeights;
use crate::scalar::guarded;
use crate::statistics::RunningStatistics;

/// The weights and options of one pass through a network.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    /// The weights, in the precision of the pass.
    pub(crate) weights: &'a PassWeights,
    /// Running means and variances.
    pub(crate) statistics: &'a RunningStatistics,
    /// How BatchNorm normalises, and whether it updates the running statistics.
    pub(crate) norm: BatchNormMode,
    /// The momentum of the running statistics; `None` for the default of the network.
    pub(crate) momentum: Option<f64>,
    /// The epsilon added to the variance; `None` for the default of the network.
    pub(crate) epsilon: Option<f64>,
}

/// How BatchNorm normalises, and whether it updates the running statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchNormMode {
    /// By the batch, updating the running statistics.
    Train,
    /// By the batch, without updating them.
    TrainFrozen,
    /// By the running statistics: evaluation.
    Eval,
    /// The same, with the layers behind convolutions folded into them ([`ConvNorm`]).
    Folded,
}

/// A layer or a block that turns a batch into another.
pub(crate) trait Forward {
    /// Computes the output for a batch.
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError>;
}

impl Forward for ConvNorm {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        if pass.norm == BatchNormMode::Folded {
            return Conv { bias: Some(self.norm.bias), ..self.conv }.forward(x, pass);
        }
        self.norm.forward(&self.conv.forward(x, pass)?, pass)
    }
}

impl Forward for Conv {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let bias = self.bias.map(|bias| pass.weights.at(bias).f_to_kind(x.kind())).transpose()?;
        let convolved = |x: &Tensor, padding: [i64; 2]| {
            let (weight, stride) = (pass.weights.at(self.weight), [self.stride; 2]);
            x.f_conv2d(weight, bias.as_ref(), stride, padding, [1, 1], self.groups)
        };
        if let Padding::Around(padding) = self.padding {
            return convolved(x, [padding; 2]);
        }
        let (_, _, height, width) = x.size4()?;
        let [vertical, horizontal] = [height, width].map(|size| same_padding(self, size));
        if vertical % 2 == 0 && horizontal % 2 == 0 {
            return convolved(x, [vertical / 2, horizontal / 2]);
        }
        let (top, left) = (vertical / 2, horizontal / 2);
        convolved(&x.f_constant_pad_nd([left, horizontal - left, top, vertical - top])?, [0, 0])
    }
}

/// Zeros on both ends of a side of `size`, together.
fn same_padding(conv: &Conv, size: i64) -> i64 {
    let outputs = (size + conv.stride - 1) / conv.stride;
    ((outputs - 1) * conv.stride + conv.side - size).max(0)
}

impl Forward for BatchNormLayer {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let (mean, variance) = pass.statistics.at(self.statistics);
        let (running, training) = match pass.norm {
            BatchNormMode::Train => (Some((mean, variance)), true),
            BatchNormMode::TrainFrozen => (None, true),
            BatchNormMode::Eval | BatchNormMode::Folded => (Some((mean, variance)), false),
        };
        x.f_batch_norm(
            Some(pass.weights.at(self.weight)),
            Some(pass.weights.at(self.bias)),
            running.map(|(mean, _)| mean),
            running.map(|(_, variance)| variance),
            training,
            pass.momentum.unwrap_or(self.momentum),
            pass.epsilon.unwrap_or(self.epsilon),
            // cuDNN may choose; its sums are deterministic for BatchNorm.
            true,
        )
    }
}

impl Forward for Linear {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        x.f_linear(pass.weights.at(self.weight), Some(pass.weights.at(self.bias)))
    }
}

/// The mean over all places of each channel, in f32.
pub(crate) fn pool(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_mean_dim([2_i64, 3].as_slice(), false, Kind::Float)
}

/// 6 in bf16.
const SIX: i64 = 0x40C0;

/// ReLU in place of what a layer has made.
pub(crate) fn relu(mut x: Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
    match pass.bits(&x)? {
        Some(mut bits) => guarded(|| bits.f_clamp_min_(0).map(|_| ())).map(|()| x),
        None => x.f_relu_(),
    }
}

/// ReLU6 in place of what a layer has made.
pub(crate) fn relu6(mut x: Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
    match pass.bits(&x)? {
        Some(mut bits) => guarded(|| bits.f_clamp_(0, SIX).map(|_| ())).map(|()| x),
        None => x.f_relu6_(),
    }
}

impl Pass<'_> {
    /// A view of bf16 numbers as integers, where nothing is differentiated. Numbers that are not negative have the order of
    /// their bits, and negative ones are negative integers; ATen clamps integers six times as fast as bf16.
    fn bits(&self, x: &Tensor) -> Result<Option<Tensor>, TchError> {
        let is_fit = self.norm == BatchNormMode::Folded && x.device() == Device::Cpu;
        let is_fit = is_fit && x.f_kind()? == Kind::BFloat16;
        is_fit.then(|| x.f_view_dtype(Kind::Int16)).transpose()
    }
}

/// The slope below zero in all Wide ResNets of this field.
const SLOPE: f64 = 0.1;

/// Leaky ReLU of the output of BatchNorm, which it consumes: only the result stays in memory.
///
/// The binding's `leaky_relu_` has the slope 0.01 and no other. Its derivative takes one, and is the same
/// function: `x` where `x > 0`, else `slope·x`. The derivative of that derivative is what the backward pass needs,
/// and it looks at nothing but the sign of the `x` it has kept; the result has the same sign. So the kept `x` is
/// released and replaced by the result, as an in-place operation would do.
pub(crate) fn leaky_relu(x: Tensor) -> Result<Tensor, TchError> {
    let mut kept = x.f_detach()?;
    let activated = guarded(|| kept.f_leaky_relu_backward(&x, SLOPE, false))?;
    drop(x);
    kept.f_set_data(&activated.f_detach()?)?;
    Ok(activated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Layout;
    use crate::parameters::Flat;

    /// Every number of bf16 except NaNs.
    #[test]
    fn the_bits_of_bf16_are_clamped_as_its_numbers_are() {
        let layout = Layout::default();
        let parameters = Flat::zeros(&layout, Device::Cpu).unwrap();
        let weights = parameters.weights(&layout, Kind::BFloat16).unwrap();
        let statistics = RunningStatistics::initial(&layout, Device::Cpu).unwrap();
        let (norm, momentum, epsilon) = (BatchNormMode::Folded, None, None);
        let pass = Pass { weights: &weights, statistics: &statistics, norm, momentum, epsilon };
        let eval = Pass { norm: BatchNormMode::Eval, ..pass };
        let bits: Vec<i16> = (i16::MIN..=i16::MAX).filter(|bits| bits & 0x7FFF <= 0x7F80).collect();
        let numbers = || Tensor::from_slice(&bits).view_dtype(Kind::BFloat16);
        assert!(pass.bits(&numbers()).unwrap().is_some() && eval.bits(&numbers()).unwrap().is_none());
        assert!(relu(numbers(), &pass).unwrap().equal(&relu(numbers(), &eval).unwrap()));
        assert!(relu6(numbers(), &pass).unwrap().equal(&relu6(numbers(), &eval).unwrap()));
        let six = relu6(numbers(), &pass).unwrap().max().double_value(&[]);
        assert_eq!(six, 6.0);
    }
}
