//! From a recipe to the settings of an engine.

use calmix_core::method::BaseLoss;
use calmix_engine::engine::Settings;
use calmix_engine::images::{Normalisation, Size};
use calmix_engine::observe::StepKind;
use calmix_engine::optimiser::Sgd;
use calmix_engine::precision::Precision;

use super::error::TrainError;
use super::frozen_features::HeadInput;
use crate::recipe::Recipe;
use crate::recipe::engine::OrAuto::Is;

/// The engine's settings for a recipe whose device and precision were decided: of the whole network, or of a head.
pub(super) fn settings(
    recipe: &Recipe,
    classes: usize,
    head: Option<&HeadInput>,
) -> Result<Settings, TrainError> {
    let (Is(device), Is(precision)) = (recipe.train.device, recipe.train.precision) else {
        return Err(TrainError::Unsupported("device and precision have not been chosen".to_owned()));
    };
    let size = recipe.augment.size as usize;
    let optimiser = &recipe.optimiser;
    let (architecture, precision, step) = match head {
        Some(head) => (head.architecture(recipe), Precision::F32, head_step(recipe)),
        None => (recipe.network.name, precision, recipe.train.step),
    };
    Ok(Settings {
        architecture,
        first_block: recipe.network.block,
        stride: recipe.network.stride,
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
        step,
    })
}

/// Without batch normalisation all kinds of steps learn the same: the one with the least arithmetic will do, but for the
/// released code, whose second pass needs a joint one.
fn head_step(recipe: &Recipe) -> StepKind {
    if recipe.method.base_loss == BaseLoss::Twice { StepKind::Joint } else { StepKind::Lean }
}
