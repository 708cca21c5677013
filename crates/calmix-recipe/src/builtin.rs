//! The built-in recipes, sweeps, presets and augmentation families, and the default recipe for a dataset.

pub(crate) mod published;

use crate::SourceName;
use crate::layers::layer::Layer;
use crate::nearest::nearest;
use crate::origin::Place;

/// A built-in recipe or sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    /// Its TOML text; a comment beside each number gives its source.
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
    "head-cifar10" "head-folder" "vectors");
const SWEEPS: &[Builtin] = texts!("sweeps/": "table-1" "table-2" "table-3" "table-4" "figure-1");
const PRESETS: &[Builtin] = texts!("presets/": "released-code" "calibrated");
const FAMILIES: &[Builtin] = texts!("augmentations/": "google" "imagenet");

pub fn builtin() -> &'static [Builtin] {
    RECIPES
}

pub fn builtin_sweeps() -> &'static [Builtin] {
    SWEEPS
}

/// Returns the layer of a preset. The defaults are the preset `paper`, so it has no layer.
pub(super) fn preset(name: &str) -> Option<Layer> {
    let text = PRESETS.iter().find(|preset| preset.name == name)?.text;
    Some(Layer::text(&Place::Preset(name.to_owned()), text))
}

/// Returns the layer of an augmentation family. The defaults are `usb`, so it has no layer.
pub(super) fn family(name: &str) -> Option<Layer> {
    let text = FAMILIES.iter().find(|family| family.name == name)?.text;
    Some(Layer::text(&Place::Family(name.to_owned()), text))
}

/// Suggests a recipe for an unknown name, or lists them all.
pub(super) fn hint(name: &str) -> String {
    let names = RECIPES.iter().map(|recipe| recipe.name);
    // The CPU recipes were called `desk-…` in earlier versions.
    let renamed = |known: &&str| {
        name.strip_prefix("desk-").is_some_and(|rest| known.strip_prefix("cpu-") == Some(rest))
    };
    match names.clone().find(renamed).or_else(|| nearest(name, names.clone())) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the built-in recipes are {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// The recipe for a folder of images on a GPU.
pub const GPU_RECIPE: &str = "folder";
/// The recipe for a folder of images on a CPU, without pretrained weights.
pub const CPU_RECIPE: &str = "cpu-folder";
/// The recipe for a folder of images on a CPU: a head on a pretrained backbone.
pub const HEAD_RECIPE: &str = "head-folder";

/// The recipe for the user's own vectors.
pub const VECTORS_RECIPE: &str = "vectors";

/// Returns whether a built-in recipe works with any splits of a folder of images.
pub fn is_for_folders(recipe: Option<&str>) -> bool {
    matches!(recipe, Some(GPU_RECIPE | CPU_RECIPE | HEAD_RECIPE))
}

/// Returns the recipe to suggest for a dataset, preferably one for a CPU.
pub fn recipe_for(source: SourceName) -> &'static str {
    match source {
        SourceName::Cifar10 => "cpu-cifar10",
        SourceName::Cifar100 | SourceName::Cifar100Coarse => "cifar100",
        SourceName::Mnist | SourceName::FashionMnist => "cpu-fashion-mnist",
        SourceName::Svhn | SourceName::SvhnNoExtra => "svhn",
        SourceName::Stl10 => "stl10",
        SourceName::Imagenet => "imagenet",
        SourceName::Webvision => "webvision",
        SourceName::Folder | SourceName::LabelsCsv | SourceName::Webdataset | SourceName::Parquet => {
            CPU_RECIPE
        }
        SourceName::Vectors => VECTORS_RECIPE,
    }
}
