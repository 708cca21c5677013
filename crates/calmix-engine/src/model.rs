//! A network with its weights on a device: what passes run through.

use calmix_core::rng::Seed;
use tch::{Kind, TchError, Tensor};

use crate::engine::Settings;
use crate::images::{Normaliser, Size};
use crate::network::layer::{BatchNormMode, Pass};
use crate::network::{Network, Output};
use crate::parameters::Flat;
use crate::precision::Precision;
use crate::statistics::RunningStatistics;

/// A network with its weights on a device.
#[derive(Debug)]
pub(crate) struct Model {
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

impl Model {
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
}
