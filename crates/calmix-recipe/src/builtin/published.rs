//! Recognises the paper's settings: the built-in recipes for its datasets, where only keys that its tables vary are changed.

use crate::Resolved;
use crate::layers::Layers;
use crate::resume::differences;

/// The built-in recipes with the paper's values for one of its datasets.
const RECIPES: [&str; 6] = ["cifar10", "cifar100", "svhn", "stl10", "imagenet", "webvision"];

/// The keys that the paper's tables vary: labels, base algorithm, pairing, smoothing, and the k and warm-up of the
/// ablations.
const VARIED: [&str; 9] = [
    "labels.keep",
    "labels.count",
    "labels.share",
    "method.base",
    "method.smoothing",
    "method.mixup.pairing",
    "method.mixup.guidance.dissimilar",
    "method.mixup.guidance.fraction",
    "method.mixup.start.share",
];

/// The keys that differ between repetitions of a run.
pub const SEEDS: [&str; 2] = ["train.seed", "labels.seed"];

/// The keys that are decided when a run starts, and the key that selects the evaluation to publish.
const LEFT_OPEN: [&str; 3] = ["train.precision", "train.micro_batches", "selection"];

/// Returns whether a recipe based on the built-in recipe `base` changes only keys that the paper's tables vary. The exact
/// setting need not be in a table.
pub fn is_in_paper(recipe: &Resolved, base: &str) -> bool {
    if !RECIPES.contains(&base) {
        return false;
    }
    let varied = VARIED.iter().filter_map(|key| Some((key, recipe.value(key)?)));
    let layers = varied.fold(Layers::new().recipe(base), |layers, (key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        layers.set(&format!("{key}={text}"))
    });
    let Ok(papers) = layers.resolve() else { return false };
    let allowed = |key: &str| SEEDS.contains(&key) || LEFT_OPEN.contains(&key);
    differences(&papers, recipe).iter().all(|change| change.may_change || allowed(&change.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_tables_vary_may_differ() {
        let is = |base: &str, settings: &[&str]| {
            let layers =
                settings.iter().fold(Layers::new().recipe(base), |layers, setting| layers.set(setting));
            is_in_paper(&layers.resolve().unwrap(), base)
        };
        assert!(is("cifar10", &[]));
        assert!(is("imagenet", &["method.base=softmatch", "method.mixup.pairing=none", "train.seed=7"]));
        assert!(is(
            "stl10",
            &["method.mixup.guidance.dissimilar=any", "train.precision=f32", "train.threads=3"]
        ));
        assert!(is("svhn", &["labels.keep=all", "method.base=supervised", "method.smoothing=uniform"]));
        assert!(!is("cifar10", &["train.steps=1000"]));
        assert!(!is("cifar100", &["network.name=wrn-28-2"]));
        assert!(!is("cifar10", &["method.smoothing=uniform", "method.epsilon=0.2"]));
        assert!(!is("cpu-cifar10", &[]));
    }
}
