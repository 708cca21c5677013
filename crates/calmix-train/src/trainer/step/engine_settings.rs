//! From a recipe to the settings of an engine.

use calmix_engine::engine::Settings;
use calmix_engine::optimiser::Sgd;
use calmix_recipe::OrAuto::Is;
use calmix_recipe::Recipe;
use calmix_recipe::model_spec::ModelSpec;

use crate::trainer::error::TrainError;

/// The engine's settings for a recipe whose device and precision were decided.
pub(crate) fn settings(recipe: &Recipe, classes: usize) -> Result<Settings, TrainError> {
    let (Is(device), Is(precision)) = (recipe.train.device, recipe.train.precision) else {
        return Err(TrainError::Unsupported("device and precision have not been chosen".to_owned()));
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
