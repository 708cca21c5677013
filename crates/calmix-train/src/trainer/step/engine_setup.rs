//! The setup of the engine: its settings, the check of memory, and its weights in a checkpoint.

use calmix_core::method::Method;
use calmix_core::samples::Samples;
use calmix_engine::engine::{EngineSnapshot, Settings};
use calmix_engine::network::Network;
use calmix_engine::optimiser::{LossScale, Sgd};
use calmix_io::process::memory::available_memory;
use calmix_recipe::OrAuto::Is;
use calmix_recipe::Recipe;
use calmix_recipe::model_spec::ModelSpec;
use calmix_run::checkpoint::Checkpoint;

use crate::trainer::error::TrainError;

/// Returns the engine's settings for a recipe with a decided device and precision.
pub(crate) fn settings(recipe: &Recipe, classes: usize) -> Result<Settings, TrainError> {
    let (Is(device), Is(precision)) = (recipe.train.device, recipe.train.precision) else {
        return Err(TrainError::unsupported("device and precision have not been chosen"));
    };
    let optimiser = &recipe.optimiser;
    Ok(Settings {
        model: ModelSpec::from(recipe),
        classes,
        device,
        precision,
        optimiser: Sgd {
            momentum: optimiser.momentum,
            nesterov: optimiser.nesterov,
            weight_decay: optimiser.weight_decay,
        },
        ema_decay: recipe.ema.decay,
        norm_momentum: Some(recipe.network.norm_momentum).filter(|&share| share > 0.0),
        clip: Some(optimiser.clip).filter(|&clip| clip > 0.0),
        step: recipe.train.step,
        sum: recipe.train.sum,
    })
}

/// Copies of the sample state in memory while a checkpoint is written or read: the state and its file.
const STATE_COPIES: u64 = 2;
/// Bytes per parameter: weight, EMA, momentum and gradient, and copies of two of them for a checkpoint.
const BYTES_PER_PARAMETER: u64 = 4 * 6;

/// The memory of a process besides batches and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryNeed {
    /// The number of unlabelled samples whose state this process stores.
    pub(crate) samples: usize,
    pub(crate) classes: usize,
    /// The size of the state of these samples in bytes.
    pub(crate) state: u64,
    /// The size of the network with its optimiser state, in bytes.
    pub(crate) network: u64,
}

impl MemoryNeed {
    pub(crate) fn new(method: &Method, settings: &Settings, samples: usize) -> Self {
        let state = Samples::bytes(method, settings.classes, samples);
        Self { samples, classes: settings.classes, state, ..Self::of_network(settings) }
    }

    /// Returns the memory of a network alone.
    pub(crate) fn of_network(settings: &Settings) -> Self {
        let network = Network::new(&settings.model, settings.classes);
        let network = BYTES_PER_PARAMETER.saturating_mul(network.layout().len() as u64);
        Self { samples: 0, classes: settings.classes, state: 0, network }
    }

    /// Refuses a run that does not fit into this machine's memory, which `processes` processes share.
    pub(crate) fn check(self, processes: usize) -> Result<(), TrainError> {
        available_memory().map_or(Ok(()), |available| self.check_in(available / processes.max(1) as u64))
    }

    fn check_in(self, available: u64) -> Result<(), TrainError> {
        let needed = self.state.saturating_mul(STATE_COPIES).saturating_add(self.network);
        if needed <= available {
            return Ok(());
        }
        let Self { samples, classes, state, network } = self;
        Err(TrainError::Memory { samples, classes, state, network, needed, available })
    }
}

const LIVE: &str = "live.safetensors";
const EMA: &str = "ema.safetensors";
const MOMENTUM: &str = "momentum.safetensors";

/// Returns the files of an engine by name.
pub(crate) fn weights_files(engine: EngineSnapshot) -> [(&'static str, Vec<u8>); 3] {
    [(LIVE, engine.weights), (EMA, engine.ema), (MOMENTUM, engine.momentum)]
}

/// Reads a checkpoint's weights, from files of at most `max_bytes` bytes.
pub(crate) fn read_weights(
    checkpoint: &Checkpoint,
    max_bytes: u64,
    loss_scale: LossScale,
) -> Result<EngineSnapshot, TrainError> {
    Ok(EngineSnapshot {
        weights: checkpoint.bytes_up_to(LIVE, max_bytes)?,
        ema: checkpoint.bytes_up_to(EMA, max_bytes)?,
        momentum: checkpoint.bytes_up_to(MOMENTUM, max_bytes)?,
        loss_scale,
    })
}

/// Refuses a checkpoint whose weights cannot be of this network, before memory is allocated for them.
pub(crate) fn check_network(checkpoint: &Checkpoint, settings: &Settings) -> Result<(), TrainError> {
    let network = Network::new(&settings.model, settings.classes);
    let min_bytes = 4 * network.layout().len() as u64;
    match checkpoint.manifest().file(EMA) {
        Some(file) if file.length < min_bytes => Err(TrainError::OtherNetwork {
            step: checkpoint.step(),
            bytes: file.length,
            network: settings.model.network.to_string(),
            min_bytes,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_too_large_for_memory_is_refused() {
        // ImageNet with a thousand classes: 5 GB, twice while it is saved.
        let imagenet = MemoryNeed { samples: 1_281_167, classes: 1_000, state: 5 << 30, network: 600 << 20 };
        assert!(imagenet.check_in(11 << 30).is_ok());
        let error = imagenet.check_in(10 << 30).unwrap_err().to_string();
        assert!(error.contains("1281167 unlabelled samples in 1000 classes takes 5120 MB"), "{error}");
        assert!(error.contains("more processes"), "{error}");
        let endless = MemoryNeed { state: u64::MAX, ..imagenet };
        assert!(endless.check_in(u64::MAX - 1).is_err());
    }
}
