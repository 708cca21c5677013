//! From a recipe to the settings of an engine.

use calmix_engine::engine::Settings;
use calmix_engine::images::{Normalisation, Size};
use calmix_engine::optimiser::Sgd;

use super::error::TrainError;
use crate::recipe::Recipe;
use crate::recipe::engine::OrAuto::Is;

/// The engine's settings for a recipe whose device and precision were decided.
pub(super) fn settings(recipe: &Recipe, classes: usize) -> Result<Settings, TrainError> {
    let (Is(device), Is(precision)) = (recipe.train.device, recipe.train.precision) else {
        return Err(TrainError::Unsupported("device and precision have not been chosen".to_owned()));
    };
    let size = recipe.augment.size as usize;
    let optimiser = &recipe.optimiser;
    Ok(Settings {
        architecture: recipe.network.name,
        first_block: recipe.network.block,
        classes,
        size: Size { height: size, width: size },
        normalisation: Normalisation { mean: recipe.dataset.mean, deviation: recipe.dataset.std },
        device,
        precision,
        optimiser: Sgd {
            momentum: optimiser.momentum,
            nesterov: optimiser.nesterov,
            weight_decay: optimiser.weight_decay,
        },
        ema_decay: recipe.ema.decay,
        norm_momentum: Some(recipe.network.norm_momentum).filter(|&share| share > 0.0),
        norm_eps: Some(recipe.network.norm_eps).filter(|&eps| eps > 0.0),
        clip: Some(optimiser.clip).filter(|&clip| clip > 0.0),
        step: recipe.train.step,
    })
}
