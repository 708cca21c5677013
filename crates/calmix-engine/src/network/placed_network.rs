//! A network with its weights on a device, ready for passes.

use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;
use tch::{Kind, TchError, Tensor};

use crate::error::EngineError;
use crate::images::{Input, InputRows};
use crate::network::parameters::{Flat, PassWeights};
use crate::network::pass::{BatchNormMode, Pass};
use crate::network::statistics::RunningStatistics;
use crate::network::{Network, Output, Outputs};
use crate::{device, precision};

/// The number of rows per pass on a GPU, which is slow with few rows. Not measured.
const GPU_ROWS: usize = 512;

/// The number of rows per evaluation pass on a CPU; fewer if images are large.
const CPU_ROWS: usize = 64;
/// The size in bytes below which the activations of a pass should stay, by using fewer rows. 64 rows of 224 pixels take less with
/// all networks here but the widest.
const PASS_BYTES: usize = 3 << 29;
/// The number of widest activations in memory at a time: a block's input, its output, and its shortcut.
const LIVE_ACTIVATIONS: usize = 4;

/// The device of a network and the format of its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) model: ModelSpec,
    pub(crate) device: Device,
    pub(crate) precision: Precision,
    pub(crate) norm_momentum: Option<f64>,
}

/// A network with its weights on a device.
#[derive(Debug)]
pub(crate) struct PlacedNetwork {
    pub(crate) network: Network,
    /// The trained weights, with respect to which the gradient is computed.
    pub(crate) parameters: Flat,
    pub(crate) statistics: RunningStatistics,
    pub(crate) precision: Precision,
    norm_momentum: Option<f64>,
    norm_eps: Option<f64>,
    pub(crate) device: tch::Device,
    pub(crate) input: Input,
}

impl PlacedNetwork {
    /// Creates a network whose weights are already on the device.
    pub(crate) fn new(network: Network, placement: &Placement, parameters: Flat) -> Result<Self, TchError> {
        let &Placement { model, precision, norm_momentum, .. } = placement;
        let device = device::torch(placement.device);
        let statistics = RunningStatistics::initial(network.layout(), device)?;
        let input = Input::new(&model, device)?;
        let norm_eps = model.norm_eps;
        Ok(Self { network, parameters, statistics, precision, norm_momentum, norm_eps, device, input })
    }

    /// Runs a pass with the trained weights; a training pass updates `statistics`.
    pub(crate) fn forward(
        &self,
        images: &Tensor,
        statistics: &RunningStatistics,
        norm: BatchNormMode,
    ) -> Result<Output, TchError> {
        let kind: Kind = precision::kind(self.precision);
        let weights = self.parameters.weights(self.network.layout(), kind)?;
        self.network.forward(&images.f_to_kind(kind)?, &self.pass(&weights, statistics, norm))
    }

    fn pass<'a>(
        &self,
        weights: &'a PassWeights,
        statistics: &'a RunningStatistics,
        norm: BatchNormMode,
    ) -> Pass<'a> {
        Pass { weights, statistics, norm, momentum: self.norm_momentum, epsilon: self.norm_eps }
    }

    /// Returns the number of rows per evaluation pass, which is always the same for this network, image size and kind of device.
    fn pass_rows(&self) -> usize {
        let max_rows = if self.device.is_cuda() { GPU_ROWS } else { CPU_ROWS };
        let numbers = self.input.side.pow(2) * self.network.channels_per_pixel();
        (PASS_BYTES / (numbers * LIVE_ACTIVATIONS * size_of::<f32>()).max(1)).clamp(1, max_rows)
    }

    /// Evaluates rows in f32 with BatchNorm's running statistics, a fixed number per pass. The last pass is padded, so that all
    /// passes have the same shape: the outputs of an image depend neither on the other images nor on their number.
    pub(crate) fn predict(&self, parameters: &Flat, pixels: &[u8]) -> Result<Outputs, EngineError> {
        let each = self.input.bytes();
        if each == 0 || !pixels.len().is_multiple_of(each) {
            let rows = pixels.len() / each.max(1);
            return Err(EngineError::Batch { batch: "evaluation", rows, what: "bytes", got: pixels.len() });
        }
        let _no_gradient = tch::no_grad_guard();
        let mut outputs = Outputs::default();
        // Prepare the weights once for all passes: a large backbone has more weights than a pass has pixels.
        let weights = parameters.weights(self.network.layout(), Kind::Float)?;
        let evaluation = self.pass(&weights, &self.statistics, BatchNormMode::Eval);
        let pass_rows = self.pass_rows();
        for chunk in pixels.chunks(pass_rows * each) {
            let rows = chunk.len() / each;
            let padding = vec![0; (pass_rows - rows) * each];
            let images = InputRows::upload(&[chunk, &padding], &self.input, self.device)?;
            let images = images.read(&self.input, 0, pass_rows)?;
            let output = self.network.forward(&images.f_to_kind(Kind::Float)?, &evaluation)?;
            for (tensor, numbers) in
                [(&output.logits, &mut outputs.logits), (&output.features, &mut outputs.features)]
            {
                let unpadded = tensor.f_narrow(0, 0, rows as i64)?.f_contiguous()?.f_view([-1])?;
                numbers.extend(Vec::<f32>::try_from(unpadded)?);
            }
        }
        Ok(outputs)
    }
}
