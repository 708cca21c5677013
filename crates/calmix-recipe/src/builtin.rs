//! The recipes that come with the program.

use crate::layer::Layer;
use crate::nearest::nearest;
use crate::origin::Place;

/// A recipe of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// What it says, as TOML; every number has its source in a comment.
    pub text: &'static str,
}

macro_rules! texts {
    ($folder:literal: $($name:literal)+) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../recipes/", $folder, $name, ".toml")),
        }),+]
    };
}

const RECIPES: &[Builtin] = texts!("":
    "cifar10" "cifar10-released-code" "cifar100" "svhn" "stl10" "imagenet" "webvision"
    "fashion-mnist" "folder" "cpu-fashion-mnist" "cpu-cifar10" "cpu-folder"
    "head-cifar10" "head-folder");
const SWEEPS: &[Builtin] = texts!("sweeps/": "table-1" "table-2" "table-3" "table-4" "figure-1");
const PRESETS: &[Builtin] = texts!("presets/": "released-code");
const FAMILIES: &[Builtin] = texts!("augmentations/": "google" "imagenet");

/// Every recipe of ours.
pub fn builtin() -> &'static [Builtin] {
    RECIPES
}

/// Every sweep of ours.
pub fn builtin_sweeps() -> &'static [Builtin] {
    SWEEPS
}

/// The layer of a preset. The defaults are the reading `paper`, so that has none.
pub(super) fn preset(name: &str) -> Option<Layer> {
    let text = PRESETS.iter().find(|preset| preset.name == name)?.text;
    Some(Layer::text(&Place::Preset(name.to_owned()), text))
}

/// The layer of a family of augmentations. The defaults are `usb`, so that has none.
pub(super) fn family(name: &str) -> Option<Layer> {
    let text = FAMILIES.iter().find(|family| family.name == name)?.text;
    Some(Layer::text(&Place::Family(name.to_owned()), text))
}

/// What was perhaps meant by a name that no recipe has.
pub(super) fn hint(name: &str) -> String {
    let names = RECIPES.iter().map(|recipe| recipe.name);
    // What the recipes for CPUs were called before.
    let renamed = |known: &&str| {
        name.strip_prefix("desk-").is_some_and(|rest| known.strip_prefix("cpu-") == Some(rest))
    };
    match names.clone().find(renamed).or_else(|| nearest(name, names.clone())) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    }
}
