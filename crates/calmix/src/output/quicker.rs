//! A quicker alternative to suggest for a run that would take days.

use std::path::Path;

use calmix_recipe::{Layers, Recipe, recipe_for};

use crate::output::format::shell_quoted;

/// The recipe whose values are suggested for other datasets.
const SMALL: &str = "cpu-cifar10";
/// The keys that decide how long a run takes.
const KEYS: [&str; 5] = ["network.name", "train.batch", "train.ratio", "train.step", "train.steps"];

/// Suggests what takes minutes instead of this recipe: a recipe for the same data, otherwise values of keys.
pub(crate) fn quicker(recipe: &Recipe) -> String {
    let name = recipe_for(recipe.dataset.source);
    let small = Layers::new().recipe(name).resolve().ok().map(|resolved| resolved.recipe);
    let is_other = small.is_some_and(|small| {
        (&small.network, &small.train.steps, &small.train.batch, &small.augment.size)
            != (&recipe.network, &recipe.train.steps, &recipe.train.batch, &recipe.augment.size)
    });
    if name.starts_with("cpu-") && is_other {
        let data = shell_quoted(Path::new(&recipe.dataset.path));
        return format!("`calmix train {name} --data {data}` takes minutes");
    }
    let small = Layers::new().recipe(SMALL).resolve().ok();
    let value = |key: &str| small.as_ref()?.value(key).map(|value| value.to_string().replace('"', ""));
    let settings = KEYS.iter().filter_map(|key| Some(format!("--set {key}={}", value(key)?)));
    format!("a small network with few steps takes minutes: {}", settings.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_for_the_same_data_or_keys() {
        let of = |name: &str| {
            let resolved = Layers::new().recipe(name).set("dataset.path=my photos").resolve().unwrap();
            quicker(&resolved.recipe)
        };
        assert_eq!(of("folder"), "`calmix train cpu-folder --data 'my photos'` takes minutes");
        assert_eq!(of("cifar10"), "`calmix train cpu-cifar10 --data 'my photos'` takes minutes");
        let keys = of("cifar100");
        assert!(
            keys.contains("--set network.name=wrn-10-2") && keys.contains("--set train.steps=2500"),
            "{keys}"
        );
        assert_eq!(of("cpu-folder"), keys);
    }
}
