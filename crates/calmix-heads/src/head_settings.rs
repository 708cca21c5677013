//! From a recipe to the settings of a head.

use calmix_core::rng::Seed;
use calmix_head::settings::{Candidates, HeadSettings};
use calmix_recipe::Recipe;

/// The settings of the head of a recipe.
pub fn head_settings(recipe: &Recipe) -> HeadSettings {
    let Recipe { train, optimiser, network, .. } = recipe;
    HeadSettings {
        method: recipe.method,
        hidden: network.head.hidden(),
        steps: recipe.steps(),
        batch: train.batch as usize,
        unlabelled_batch: recipe.unlabelled() as usize,
        lr: optimiser.lr,
        schedule: optimiser.schedule,
        momentum: optimiser.momentum,
        nesterov: optimiser.nesterov,
        weight_decay: optimiser.weight_decay,
        clip: Some(optimiser.clip).filter(|&clip| clip > 0.0),
        ema_decay: recipe.ema.decay,
        folds: network.folds as usize,
        candidates: if recipe.has_one_vector() { Candidates::OneVector } else { Candidates::Method },
        labels_alone: network.labels_alone,
        log_every: recipe.log.every,
        seed: Seed(train.seed),
    }
}
