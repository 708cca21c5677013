//! A network that only predicts: weights from a file, nothing that learning needs.

use calmix_core::rng::Seed;
use calmix_dist::gpu::GpuFlags;

use crate::device::Device;
use crate::engine::{Outputs, Settings};
use crate::error::EngineError;
use crate::images::{Normalisation, Size};
use crate::network::{Architecture, FirstBlock, Network};
use crate::observe::StepKind;
use crate::optimiser::Sgd;
use crate::placed_network::PlacedNetwork;
use crate::precision::Precision;
use crate::weights::{self, Part};

/// What a file of weights does not say of its network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictorSettings {
    /// The network.
    pub architecture: Architecture,
    /// What the first block of the later stages of a Wide ResNet reads.
    pub first_block: FirstBlock,
    /// C.
    pub classes: usize,
    /// The size of all images.
    pub size: Size,
    /// What their channels are shifted and scaled by.
    pub normalisation: Normalisation,
    /// What BatchNorm adds to the variance before the root, where it is not the network's own number.
    pub norm_eps: Option<f64>,
    /// Where it runs.
    pub device: Device,
}

/// A network with the weights of a file: it says the same as the [`Engine`](crate::engine::Engine) that wrote them.
#[derive(Debug)]
pub struct Predictor {
    network: PlacedNetwork,
}

impl Predictor {
    /// Takes the weights of a safetensors file.
    ///
    /// # Errors
    /// If they are not of this network, or the device is not there or has too little memory.
    pub fn new(settings: &PredictorSettings, file: &[u8]) -> Result<Self, EngineError> {
        let &PredictorSettings { architecture, first_block, classes, size, normalisation, norm_eps, device } =
            settings;
        device.check()?;
        let network = Network::new(architecture, first_block, classes);
        // Before memory is allocated for a network that somebody else named.
        weights::check(network.layout(), file)?;
        device.gpu_flags().into_iter().for_each(GpuFlags::set);
        let settings = Settings {
            architecture,
            first_block,
            classes,
            size,
            normalisation,
            device,
            precision: Precision::F32,
            optimiser: Sgd::default(),
            ema_decay: 0.0,
            norm_momentum: None,
            norm_eps,
            clip: None,
            step: StepKind::Lean,
        };
        let mut network = PlacedNetwork::new(network, &settings, Seed(0))?;
        let PlacedNetwork { network: layers, parameters, statistics, .. } = &mut network;
        weights::read(layers.layout(), Part::Network, file, parameters, Some(statistics))?;
        Ok(Self { network })
    }

    /// Bytes of the longest file of weights of a network, without its metadata.
    pub fn longest_weights(architecture: Architecture, first_block: FirstBlock, classes: usize) -> u64 {
        weights::longest(Network::new(architecture, first_block, classes).layout())
    }

    /// As [`Engine::predict`](crate::engine::Engine::predict).
    ///
    /// # Errors
    /// If `pixels` are not whole images of the size, or the device has too little memory for so many.
    pub fn predict(&self, pixels: &[u8]) -> Result<Outputs, EngineError> {
        self.network.predict(&self.network.parameters, pixels)
    }
}
