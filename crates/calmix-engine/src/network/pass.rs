//! The operations of networks on libtorch, with the weights of a [`Pass`].

use calmix_recipe::network::layer::{BatchNormLayer, Conv, ConvNorm, Linear, Padding};
use calmix_recipe::network::operations::{LEAKY_SLOPE, Operations};
use tch::{Kind, TchError, Tensor};

use crate::network::parameters::PassWeights;
use crate::network::statistics::RunningStatistics;
use crate::scalar::guarded;

/// The weights and options of one pass through a network.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    /// The weights, in the precision of the pass.
    pub(crate) weights: &'a PassWeights,
    pub(crate) statistics: &'a RunningStatistics,
    /// How BatchNorm normalises, and whether it updates the running statistics.
    pub(crate) norm: BatchNormMode,
    /// The momentum of the running statistics; `None` for the default of the network.
    pub(crate) momentum: Option<f64>,
    /// The epsilon added to the variance; `None` for the default of the network.
    pub(crate) epsilon: Option<f64>,
}

/// The mode of BatchNorm: how it normalises, and whether it updates the running statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchNormMode {
    /// Normalises by the batch and updates the running statistics.
    Train,
    /// Normalises by the batch without updating them.
    TrainFrozen,
    /// Normalises by the running statistics, in an evaluation.
    Eval,
}

impl Operations for &Pass<'_> {
    type Value = Tensor;
    type Error = TchError;

    fn conv(&mut self, x: &Tensor, layer: &Conv) -> Result<Tensor, TchError> {
        let bias = layer.bias.map(|bias| self.weights.at(bias).f_to_kind(x.kind())).transpose()?;
        let convolved = |x: &Tensor, padding: [i64; 2]| {
            let (weight, stride) = (self.weights.at(layer.weight), [layer.stride; 2]);
            x.f_conv2d(weight, bias.as_ref(), stride, padding, [1, 1], layer.groups)
        };
        if let Padding::Around(padding) = layer.padding {
            return convolved(x, [padding; 2]);
        }
        let (_, _, height, width) = x.size4()?;
        let [vertical, horizontal] = [height, width].map(|size| layer.same_padding(size));
        if vertical % 2 == 0 && horizontal % 2 == 0 {
            return convolved(x, [vertical / 2, horizontal / 2]);
        }
        let (top, left) = (vertical / 2, horizontal / 2);
        convolved(&x.f_constant_pad_nd([left, horizontal - left, top, vertical - top])?, [0, 0])
    }

    fn batch_norm(&mut self, x: &Tensor, layer: &BatchNormLayer) -> Result<Tensor, TchError> {
        let (mean, variance) = self.statistics.at(layer.statistics);
        let (running, training) = match self.norm {
            BatchNormMode::Train => (Some((mean, variance)), true),
            BatchNormMode::TrainFrozen => (None, true),
            BatchNormMode::Eval => (Some((mean, variance)), false),
        };
        x.f_batch_norm(
            Some(self.weights.at(layer.weight)),
            Some(self.weights.at(layer.bias)),
            running.map(|(mean, _)| mean),
            running.map(|(_, variance)| variance),
            training,
            self.momentum.unwrap_or(layer.momentum),
            self.epsilon.unwrap_or(layer.epsilon),
            // Allow cuDNN, whose BatchNorm is deterministic.
            true,
        )
    }

    fn conv_norm(&mut self, x: &Tensor, layer: &ConvNorm) -> Result<Tensor, TchError> {
        let convolved = self.conv(x, &layer.conv)?;
        self.batch_norm(&convolved, &layer.norm)
    }

    fn linear(&mut self, x: &Tensor, layer: &Linear) -> Result<Tensor, TchError> {
        x.f_linear(self.weights.at(layer.weight), Some(self.weights.at(layer.bias)))
    }

    fn relu(&mut self, mut x: Tensor) -> Result<Tensor, TchError> {
        x.f_relu_()
    }

    fn relu6(&mut self, mut x: Tensor) -> Result<Tensor, TchError> {
        x.f_relu6_()
    }

    /// Applies the leaky ReLU to the output of BatchNorm and releases it: only the result stays in memory.
    ///
    /// The binding's `leaky_relu_` has a fixed slope of 0.01. Its derivative takes a slope and, applied to `x` itself, is the
    /// same function: `x` where `x > 0`, else `slope·x`. The backward pass needs the derivative of that derivative, which depends
    /// only on the sign of the saved `x`, and the result has the same sign. So the saved `x` is replaced by the result, as an
    /// in-place operation would do.
    fn leaky_relu(&mut self, x: Tensor) -> Result<Tensor, TchError> {
        let mut kept = x.f_detach()?;
        let activated = guarded(|| kept.f_leaky_relu_backward(&x, LEAKY_SLOPE, false))?;
        drop(x);
        kept.f_set_data(&activated.f_detach()?)?;
        Ok(activated)
    }

    fn add(&mut self, mut x: Tensor, other: &Tensor) -> Result<Tensor, TchError> {
        x.f_add_(other)
    }

    fn max_pool(&mut self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)
    }

    fn mean_of_pixels(&mut self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_mean_dim([2_i64, 3].as_slice(), false, Kind::Float)
    }
}
