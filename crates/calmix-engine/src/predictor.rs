//! A network for prediction only: weights from a file, without training state. Models run on ONNX Runtime; this is the reference
//! that tests compare it with.

use calmix_dist::gpu::GpuFlags;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;

use crate::device;
use crate::error::EngineError;
use crate::network::parameters::Flat;
use crate::network::placed_network::{PlacedNetwork, Placement};
use crate::network::{Network, Outputs};
use crate::weights::{self, Part};

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
    pub fn new(model: ModelSpec, classes: usize, device: Device, file: &[u8]) -> Result<Self, EngineError> {
        device::check(device)?;
        let network = Network::new(&model, classes);
        // Check first, before memory is allocated, because the file may be untrusted.
        weights::check(network.layout(), file)?;
        device::gpu_flags(device).into_iter().for_each(GpuFlags::set);
        let parameters = Flat::zeros(network.layout(), device::torch(device))?;
        let placement = Placement { model, device, precision: Precision::F32, norm_momentum: None };
        let mut network = PlacedNetwork::new(network, &placement, parameters)?;
        let PlacedNetwork { network: layers, parameters, statistics, .. } = &mut network;
        weights::read(layers.layout(), Part::Network, file, parameters, Some(statistics))?;
        Ok(Self { network })
    }

    /// Evaluates images as [`Engine::predict`](crate::engine::Engine::predict) does.
    ///
    /// # Errors
    /// If `pixels` are not whole images of the right size, or the device has too little memory for them.
    pub fn predict(&self, pixels: &[u8]) -> Result<Outputs, EngineError> {
        self.network.predict(&self.network.parameters, pixels)
    }
}
