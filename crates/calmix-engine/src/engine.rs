//! The engine: a model in training.

use calmix_core::rng::Seed;
use calmix_dist::gpu::GpuFlags;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;
use calmix_recipe::step_kind::{StepKind, SumKind};
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::device;
use crate::error::EngineError;
use crate::network::parameters::{Flat, decayed};
use crate::network::placed_network::{PlacedNetwork, Placement};
use crate::network::statistics::RunningStatistics;
use crate::network::{Layout, Network, Outputs};
use crate::optimiser::{LossScale, Sgd};
use crate::scalar::guarded;
use crate::weights::{self, Part};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub model: ModelSpec,
    pub classes: usize,
    pub device: Device,
    /// The precision of the training passes.
    pub precision: Precision,
    pub optimiser: Sgd,
    /// The decay of the exponential moving average of the weights, per step.
    pub ema_decay: f64,
    /// The momentum of BatchNorm's running statistics; `None` for the default of the network.
    pub norm_momentum: Option<f64>,
    /// The norm to which a larger gradient is clipped; `None` for no clipping.
    pub clip: Option<f64>,
    pub step: StepKind,
    /// How the contributions of several processes to a step are summed.
    pub sum: SumKind,
}

impl From<&Settings> for Placement {
    fn from(settings: &Settings) -> Self {
        let &Settings { model, device, precision, norm_momentum, .. } = settings;
        Self { model, device, precision, norm_momentum }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// The trained weights.
    #[serde(rename = "live")]
    Trained,
    /// The EMA of the weights; BatchNorm's statistics are those of the trained weights.
    Ema,
}

/// The state of an engine in a checkpoint. The first three fields are safetensors files.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSnapshot {
    /// The trained weights and BatchNorm's statistics.
    pub weights: Vec<u8>,
    /// The EMA of the weights, with BatchNorm's statistics: a complete model.
    pub ema: Vec<u8>,
    pub momentum: Vec<u8>,
    pub loss_scale: LossScale,
}

/// A model in training: weights, EMA and momentum.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    model: PlacedNetwork,
    ema: Flat,
    velocity: Flat,
    loss_scale: LossScale,
}

impl Engine {
    /// Creates a network before its first step. The same seed gives the same bits on every machine.
    ///
    /// # Errors
    /// If the device does not exist or has too little memory.
    pub fn new(settings: Settings, seed: Seed) -> Result<Self, EngineError> {
        device::check(settings.device)?;
        device::gpu_flags(settings.device).into_iter().for_each(GpuFlags::set);
        let device = device::torch(settings.device);
        let network = Network::new(&settings.model, settings.classes);
        let velocity = Flat::zeros(network.layout(), device)?;
        let parameters = Flat::initial(network.layout(), seed, device)?.differentiable()?;
        let model = PlacedNetwork::new(network, &Placement::from(&settings), parameters)?;
        let ema = model.parameters.copy()?;
        let loss_scale = if settings.precision == Precision::F16 { LossScale::HALF } else { LossScale::ONE };
        Ok(Self { settings, model, ema, velocity, loss_scale })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the names and shapes of the parameters.
    pub fn layout(&self) -> &Layout {
        self.model.network.layout()
    }

    pub(crate) fn model(&self) -> &PlacedNetwork {
        &self.model
    }

    pub(crate) fn loss_scale(&self) -> LossScale {
        self.loss_scale
    }

    /// Lowers the loss scale after a non-finite gradient; returns whether the scale may have caused it.
    pub(crate) fn loss_scale_overflowed(&mut self) -> bool {
        self.loss_scale.record_overflow()
    }

    /// Updates statistics, weights and EMA: clips the gradient, then takes the optimiser's step.
    pub(crate) fn update(
        &mut self,
        mut gradient: Tensor,
        statistics: &Tensor,
        norm: f64,
        rate: f64,
    ) -> Result<(), EngineError> {
        self.loss_scale.record_finite();
        self.model.statistics.update(statistics)?;
        if let Some(limit) = self.settings.clip
            && norm > limit
        {
            // Like `clip_grad_norm_`, which keeps the divisor away from zero.
            let _ = guarded(|| gradient.f_mul_scalar_(limit / (norm + 1e-6)))?;
        }
        let decayed = decayed(self.model.network.layout());
        let parameters = &mut self.model.parameters.buffer;
        self.settings.optimiser.step(rate, parameters, &mut self.velocity.buffer, &mut gradient, decayed)?;
        // ema = decay·ema + (1 − decay)·parameters.
        let weight = 1.0 - self.settings.ema_decay;
        let _ = guarded(|| self.ema.buffer.f_lerp_(parameters, weight))?;
        Ok(())
    }

    /// Evaluates images with BatchNorm's running statistics. It computes in f32 whatever the training precision, because logits
    /// with eight bits would change the calibration. The outputs of an image do not depend on the other images of the batch.
    ///
    /// # Errors
    /// If `pixels` are not whole images of the right size, or the device has too little memory for them.
    pub fn predict(&self, pixels: &[u8], which: Weights) -> Result<Outputs, EngineError> {
        let parameters = match which {
            Weights::Trained => &self.model.parameters,
            Weights::Ema => &self.ema,
        };
        self.model.predict(parameters, pixels)
    }

    /// Returns a checksum of the weights, their EMA and their momentum. Any changed bit changes it.
    pub fn digest(&self) -> Result<u64, EngineError> {
        let mut digest = 0_u64;
        for buffer in [&self.model.parameters, &self.ema, &self.velocity] {
            let bits = buffer.buffer.f_detach()?.f_view_dtype(Kind::Int)?;
            let sum = bits.f_sum(Kind::Int64)?.f_int64_value(&[])?;
            digest = digest.rotate_left(21) ^ sum.cast_unsigned();
        }
        Ok(digest)
    }

    /// Returns the maximum size in bytes of a file with weights of this network.
    pub fn max_weights_bytes(&self) -> u64 {
        weights::max_bytes(self.layout())
    }

    /// Loads the backbone of a pretrained network from a safetensors file. The classifier is not changed; that of the file, if
    /// any, is for other classes.
    ///
    /// # Errors
    /// If the file is not of this network; nothing has changed then.
    pub fn start_from(&mut self, file: &[u8]) -> Result<(), EngineError> {
        let (layout, device) = (self.layout(), self.model.device);
        let mut backbone = self.model.parameters.copy()?;
        let mut statistics = RunningStatistics::initial(layout, device)?;
        weights::read(layout, Part::Backbone, file, &mut backbone, Some(&mut statistics))?;
        self.ema = backbone.copy()?;
        self.model.parameters = backbone.differentiable()?;
        self.model.statistics = statistics;
        Ok(())
    }

    /// Takes a snapshot of the state.
    pub fn snapshot(&self) -> Result<EngineSnapshot, EngineError> {
        let (layout, statistics) = (self.layout(), &self.model.statistics);
        Ok(EngineSnapshot {
            weights: weights::write(layout, &self.model.parameters, Some(statistics))?,
            ema: weights::write(layout, &self.ema, Some(statistics))?,
            momentum: weights::write(layout, &self.velocity, None)?,
            loss_scale: self.loss_scale,
        })
    }

    /// Restores a snapshot, bit for bit.
    ///
    /// # Errors
    /// If one of its files is not of this network; nothing has changed then.
    pub fn restore(&mut self, snapshot: &EngineSnapshot) -> Result<(), EngineError> {
        let (layout, device) = (self.layout(), self.model.device);
        let empty = || Flat::zeros(layout, device);
        let mut parameters = empty()?;
        let mut ema = empty()?;
        let mut velocity = empty()?;
        let mut statistics = RunningStatistics::initial(layout, device)?;
        // Both files contain the same statistics, so the order of reading does not matter.
        weights::read(layout, Part::Network, &snapshot.ema, &mut ema, Some(&mut statistics))?;
        weights::read(layout, Part::Network, &snapshot.weights, &mut parameters, Some(&mut statistics))?;
        weights::read(layout, Part::Network, &snapshot.momentum, &mut velocity, None)?;
        self.model.parameters = parameters.differentiable()?;
        self.model.statistics = statistics;
        self.ema = ema;
        self.velocity = velocity;
        self.loss_scale = snapshot.loss_scale;
        Ok(())
    }
}
