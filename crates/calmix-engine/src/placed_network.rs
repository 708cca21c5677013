//! A network with its weights on a device: what passes run through.

use calmix_core::rng::Seed;
use tch::{Kind, TchError, Tensor};

use crate::engine::{Outputs, Settings};
use crate::error::EngineError;
use crate::images::{Images, Normaliser, Size};
use crate::network::layer::{BatchNormMode, Pass};
use crate::network::{Network, Output};
use crate::parameters::Flat;
use crate::precision::Precision;
use crate::statistics::RunningStatistics;

/// Rows of a pass that predicts. The rest of the last pass is filled up, so that every pass has the same shape: what the
/// network says about an image depends neither on its neighbours nor on how many there are.
const PASS: usize = 64;

/// A network with its weights on a device.
#[derive(Debug)]
pub(crate) struct PlacedNetwork {
    pub(crate) network: Network,
    /// The live weights: what the gradient is taken by.
    pub(crate) parameters: Flat,
    pub(crate) statistics: RunningStatistics,
    pub(crate) precision: Precision,
    norm_momentum: Option<f64>,
    norm_eps: Option<f64>,
    pub(crate) device: tch::Device,
    pub(crate) normaliser: Normaliser,
    pub(crate) size: Size,
}

impl PlacedNetwork {
    pub(crate) fn new(network: Network, settings: &Settings, seed: Seed) -> Result<Self, TchError> {
        let &Settings { precision, norm_momentum, norm_eps, size, .. } = settings;
        let device = settings.device.torch();
        let parameters = Flat::initial(network.layout(), seed, device)?.differentiable()?;
        let statistics = RunningStatistics::initial(network.layout(), device)?;
        let normaliser = Normaliser::new(&settings.normalisation, device)?;
        Ok(Self {
            network,
            parameters,
            statistics,
            precision,
            norm_momentum,
            norm_eps,
            device,
            normaliser,
            size,
        })
    }

    /// A pass with the live weights, which moves `statistics` on if it learns.
    pub(crate) fn forward(
        &self,
        images: &Tensor,
        statistics: &RunningStatistics,
        norm: BatchNormMode,
    ) -> Result<Output, TchError> {
        self.forward_with(&self.parameters, images, statistics, norm, self.precision)
    }

    /// A pass with other weights of the same network, in a precision of its own.
    pub(crate) fn forward_with(
        &self,
        parameters: &Flat,
        images: &Tensor,
        statistics: &RunningStatistics,
        norm: BatchNormMode,
        precision: Precision,
    ) -> Result<Output, TchError> {
        let kind: Kind = precision.kind();
        let weights = parameters.weights(self.network.layout(), kind)?;
        let pass = Pass {
            weights: &weights,
            statistics,
            norm,
            momentum: self.norm_momentum,
            epsilon: self.norm_eps,
        };
        self.network.forward(&images.f_to_kind(kind)?, &pass)
    }

    /// What the network says about images as they are, by BatchNorm's running statistics and in f32.
    pub(crate) fn predict(&self, parameters: &Flat, pixels: &[u8]) -> Result<Outputs, EngineError> {
        let each = self.size.bytes();
        if each == 0 || !pixels.len().is_multiple_of(each) {
            let rows = pixels.len() / each.max(1);
            return Err(EngineError::Batch { batch: "evaluation", rows, what: "bytes", got: pixels.len() });
        }
        let _no_gradient = tch::no_grad_guard();
        let mut outputs = Outputs::default();
        for pass in pixels.chunks(PASS * each) {
            let rows = pass.len() / each;
            let filling = vec![0; (PASS - rows) * each];
            let images = Images::upload(&[pass, &filling], self.size, self.device)?;
            let images = images.normalised(&self.normaliser, 0, PASS)?;
            let (norm, precision) = (BatchNormMode::Eval, Precision::F32);
            let said = self.forward_with(parameters, &images, &self.statistics, norm, precision)?;
            for (tensor, numbers) in
                [(&said.logits, &mut outputs.logits), (&said.features, &mut outputs.features)]
            {
                let kept = tensor.f_narrow(0, 0, rows as i64)?.f_contiguous()?.f_view([-1])?;
                numbers.extend(Vec::<f32>::try_from(kept)?);
            }
        }
        Ok(outputs)
    }
}
