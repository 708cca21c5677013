//! The weights in a checkpoint: the trained ones, their average, and the momentum, each as the engine encodes it.

use calmix_engine::engine::{EngineSnapshot, Settings};
use calmix_engine::loss_scale::LossScale;
use calmix_engine::network::Network;
use calmix_run::checkpoint::Checkpoint;

use crate::trainer::error::TrainError;

const LIVE: &str = "live.safetensors";
const EMA: &str = "ema.safetensors";
const MOMENTUM: &str = "momentum.safetensors";

/// The files of an engine, with their names.
pub(crate) fn weights_files(engine: EngineSnapshot) -> [(&'static str, Vec<u8>); 3] {
    [(LIVE, engine.live), (EMA, engine.ema), (MOMENTUM, engine.momentum)]
}

/// Reads the weights of a checkpoint of a network whose files have at most `longest` bytes.
pub(crate) fn read_weights(
    checkpoint: &Checkpoint,
    longest: u64,
    loss_scale: LossScale,
) -> Result<EngineSnapshot, TrainError> {
    Ok(EngineSnapshot {
        live: checkpoint.bytes_up_to(LIVE, longest)?,
        ema: checkpoint.bytes_up_to(EMA, longest)?,
        momentum: checkpoint.bytes_up_to(MOMENTUM, longest)?,
        loss_scale,
    })
}

/// Refuses a checkpoint whose weights cannot be of this network, before memory is taken for one.
pub(crate) fn check_network(checkpoint: &Checkpoint, settings: &Settings) -> Result<(), TrainError> {
    let network = Network::of(&settings.model, settings.classes);
    let least = 4 * network.layout().len() as u64;
    match checkpoint.manifest().file(EMA) {
        Some(file) if file.length < least => Err(TrainError::OtherNetwork {
            step: checkpoint.step(),
            bytes: file.length,
            network: settings.model.network.to_string(),
            least,
        }),
        _ => Ok(()),
    }
}
