//! A network for prediction only: weights from a file, without the state of training. Models run on ONNX Runtime; this is the
//! oracle that tests compare it with.

use calmix_dist::gpu::GpuFlags;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;

use crate::device;
use crate::error::EngineError;
use crate::network::Network;
use crate::network::Outputs;
use crate::network::parameters::Flat;
use crate::network::placed_network::{PlacedNetwork, Placement};
use crate::weights::{self, Part};

/// The properties of a network that a file of weights does not contain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictorSettings {
    /// The network and its images.
    pub model: ModelSpec,
    /// The number of classes.
    pub classes: usize,
    /// The device it runs on.
    pub device: Device,
}

impl From<&PredictorSettings> for Placement {
    fn from(settings: &PredictorSettings) -> Self {
        let &PredictorSettings { model, device, .. } = settings;
        Self { model, device, precision: Precision::F32, norm_momentum: None }
    }
}

/// A network with the weights of a file: its outputs equal those of the [`Engine`](crate::engine::Engine) that wrote them.
#[derive(Debug)]
pub struct Predictor {
    network: PlacedNetwork,
}

impl Predictor {
    /// Loads the weights of a safetensors file.
    ///
    /// # Errors
    /// If they are not of this network, or the device does not exist or has too little memory.
    pub fn new(settings: &PredictorSettings, file: &[u8]) -> Result<Self, EngineError> {
        let &PredictorSettings { model, classes, device } = settings;
        device::check(device)?;
        let network = Network::of(&model, classes);
        // Checked before memory is allocated, because the network comes from an untrusted file.
        weights::check(network.layout(), file)?;
        device::gpu_flags(device).into_iter().for_each(GpuFlags::set);
        let parameters = Flat::zeros(network.layout(), device::torch(device))?;
        let mut network = PlacedNetwork::new(network, &Placement::from(settings), parameters)?;
        let PlacedNetwork { network: layers, parameters, statistics, .. } = &mut network;
        weights::read(layers.layout(), Part::Network, file, parameters, Some(statistics))?;
        Ok(Self { network })
    }

    /// As [`Engine::predict`](crate::engine::Engine::predict).
    ///
    /// # Errors
    /// If `pixels` are not whole images of the size, or the device has too little memory for them.
    pub fn predict(&self, pixels: &[u8]) -> Result<Outputs, EngineError> {
        self.network.predict(&self.network.parameters, pixels)
    }
}
