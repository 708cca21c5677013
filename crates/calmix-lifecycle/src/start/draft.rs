//! The recipe of a run that is about to start. The user's settings take precedence over those that the dataset and the available
//! weights decide. It is resolved twice, before and after the dataset is read.

use std::path::{Path, PathBuf};

use calmix_data::cloud::CloudUrl;
use calmix_data::dataset::Dataset;
use calmix_data::default_paths::folder_for_output;
use calmix_data::split::LabelSplit;
use calmix_recipe::device::Device;
use calmix_recipe::{
    CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE, Layers, OrderName, Resolved, SourceName, detect_source,
    is_for_folders, is_own_format, recipe_for,
};
use calmix_run::pretrained::weights_folder::{StoredWeights, WeightsFolder};
use toml::Value;

use super::backbone::{self, BackboneChoice};
use super::dataset_settings::{choose_splits, source_settings};
use super::pretrained_layer::with_pretrained;
use crate::error::{LifecycleError, StartError};
use crate::splits::draw_split;
use crate::start_context::StartContext;

/// The origin of settings that follow from the contents of the dataset folder.
const FOLDER_CONTENTS: &str = "contents of the dataset folder";
/// The origin of settings that follow from a list of unlabelled samples.
const UNLABELLED_LIST: &str = "list of unlabelled samples";
/// The origin of settings that follow from the available weights and the number of views.
const VIEW_COUNT: &str = "fixed rule of the number of views";
/// The origin of the numbers of views that a method on a head needs to have an effect.
const METHOD_VIEWS_ORIGIN: &str = "method set for a head";
/// The number of weak views, and of strong views, for a method on a head, unless the user sets it.
const METHOD_VIEWS: i64 = 2;
/// The value of `network.train` that trains a head.
const HEAD: &str = "head";

/// The recipe before its dataset is read.
#[derive(Debug, Clone)]
pub struct Draft {
    layers: Layers,
    /// The recipe so far. If calmix is going to choose the backbone, it has the first of the available ones.
    pub resolved: Resolved,
    /// The built-in recipe, if calmix chose it.
    pub chosen_recipe: Option<&'static str>,
    /// The weights to choose from; empty if the recipe needs none, or the user names one.
    weights: Vec<StoredWeights>,
}

#[derive(Debug)]
pub struct CompletedDraft {
    pub resolved: Resolved,
    pub split: LabelSplit,
    /// The backbone, if calmix chose it.
    pub backbone: Option<BackboneChoice>,
}

impl Draft {
    /// Resolves the user's settings. If they name neither a recipe nor a file, the folder of the dataset, the device and the
    /// available weights decide the recipe. `device` finds the device of this machine; it is called only if the user names
    /// neither a recipe nor a device.
    pub fn new(layers: Layers, device: impl FnOnce() -> Device) -> Result<Self, LifecycleError> {
        let chosen_recipe = chosen_recipe(&layers, device)?;
        let mut layers = chosen_recipe.into_iter().fold(layers, Layers::recipe);
        layers = layers.clone().decided(FOLDER_CONTENTS, reading_of_folder(&layers));
        if layers.word("labels.unlabelled_file").is_some_and(|list| !list.is_empty()) {
            // The limit of the recipe is meant for folders of any size. A user who lists samples wants all of them.
            layers = layers.decided(UNLABELLED_LIST, [("labels.unlabelled_count", Value::Integer(0))]);
        }
        layers = layers.clone().decided(METHOD_VIEWS_ORIGIN, views_of_method(&layers));
        let chooses = layers.base() == Some(HEAD_RECIPE) && !layers.is_set_by_user("network.weights");
        let weights = if chooses { backbone::weights_available() } else { Vec::new() };
        let any = weights.first().map(|any| ("network.weights", Value::String(any.name.clone())));
        let resolved = resolve(layers.clone().decided(VIEW_COUNT, any))?;
        Ok(Self { layers, resolved, chosen_recipe, weights })
    }

    /// Returns the built-in recipe that it is based on, if any.
    pub fn base(&self) -> Option<&str> {
        self.layers.base()
    }

    /// Returns the folder for the features of a frozen backbone: the one that the user sets, or one beside the dataset that all
    /// its runs share. `None` if a whole network is trained.
    pub fn feature_cache(&self) -> Option<String> {
        let recipe = &self.resolved.recipe;
        match recipe.network.cache.as_str() {
            _ if !recipe.has_head() => None,
            "" => {
                let cache = folder_for_output(Path::new(&recipe.dataset.path)).join("features");
                Some(cache.to_string_lossy().into_owned())
            }
            cache => Some(cache.to_owned()),
        }
    }

    /// Sets the prepared dataset, unless the user sets one.
    pub fn use_prepared(&mut self, prepared: &Path) {
        let prepared = Value::String(prepared.to_string_lossy().into_owned());
        self.layers = self.layers.clone().decided(FOLDER_CONTENTS, [("dataset.prepared", prepared)]);
    }

    /// Adds the settings that a number of samples decides before any has a label: the feature cache, and the weights that a run on
    /// these samples will choose.
    pub fn complete_for_pool(&self, views: u64) -> Result<Resolved, LifecycleError> {
        let cache = self.feature_cache().map(|cache| ("network.cache", Value::String(cache)));
        let chosen = backbone::choose_for(&self.weights, views);
        let settings = chosen.as_ref().map(BackboneChoice::settings).into_iter().flatten();
        resolve(self.layers.clone().decided(FOLDER_CONTENTS, cache).decided(VIEW_COUNT, settings))
    }

    /// Adds the settings that the dataset decides: its splits, its labels, and the weights that suit its number of images.
    pub fn complete(
        &self,
        dataset: &Dataset,
        context: &mut StartContext<'_>,
    ) -> Result<CompletedDraft, LifecycleError> {
        let mut recipe = self.resolved.recipe.clone();
        let mut decided = Vec::new();
        if is_for_folders(self.base()) {
            decided.extend(choose_splits(&self.resolved, &mut recipe, dataset, &mut *context.notify));
        }
        if let Some(cache) = self.feature_cache() {
            recipe.network.cache.clone_from(&cache);
            decided.push(("network.cache", Value::String(cache)));
        }
        let split = draw_split(&recipe, dataset)?;
        let backbone = backbone::choose(&self.weights, &recipe, dataset, &split)?;
        let layers = self.layers.clone().decided(FOLDER_CONTENTS, decided);
        let chosen = backbone.as_ref().map(BackboneChoice::settings);
        let resolved = resolve(layers.decided(VIEW_COUNT, chosen.into_iter().flatten()))?;
        Ok(CompletedDraft { resolved, split, backbone })
    }
}

/// Returns whether these layers train a head, on images or on vectors, without resolving them. `device` is called as in
/// [`Draft::new`].
pub fn trains_head(layers: &Layers, device: impl FnOnce() -> Device) -> Result<bool, LifecycleError> {
    let chosen = chosen_recipe(layers, device)?;
    let layers = chosen.into_iter().fold(layers.clone(), Layers::recipe);
    Ok(layers.word("network.train") == Some(HEAD))
}

/// Resolves the layers, with the configuration of the weights that they name.
fn resolve(layers: Layers) -> Result<Resolved, LifecycleError> {
    let layers = with_pretrained(layers, &WeightsFolder::of_user()).map_err(LifecycleError::pretrained)?;
    Ok(layers.resolve()?)
}

/// Returns the built-in recipe for a folder of the user's own images; `None` if the user names a recipe.
fn chosen_recipe(
    layers: &Layers,
    device: impl FnOnce() -> Device,
) -> Result<Option<&'static str>, LifecycleError> {
    if layers.names_recipe() {
        return Ok(None);
    }
    let Some(folder) = layers.word("dataset.path").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    else {
        return Err(StartError::Nothing.into());
    };
    if !folder.is_dir() && !CloudUrl::is_url(&folder) {
        let problem = if folder.exists() { "is not a folder" } else { "does not exist" };
        return Err(StartError::NoFolder { folder, problem: problem.to_owned() }.into());
    }
    let named = layers.word("dataset.source").and_then(|name| name.parse::<SourceName>().ok());
    let source_name = named.unwrap_or_else(|| detect_source(&folder, names_columns(layers)));
    if !is_own_format(source_name) {
        let recipe = recipe_for(source_name);
        let current = std::env::current_dir().unwrap_or_default();
        // Show the path as the user most likely typed it: the layers have the absolute one.
        let folder = folder.strip_prefix(current).unwrap_or(&folder).to_owned();
        return Err(StartError::NeedsRecipe { folder, source_name, recipe }.into());
    }
    let named = layers.word("train.device").and_then(|name| name.parse::<Device>().ok());
    let weights = layers.word("network.weights").unwrap_or_default();
    let names_encoder = WeightsFolder::of_user().find_encoder(weights).is_some();
    // An encoder can only be the backbone of a head.
    if names_encoder {
        return Ok(Some(HEAD_RECIPE));
    }
    Ok(Some(match named.unwrap_or_else(device) {
        Device::Cuda(_) | Device::Mps => GPU_RECIPE,
        Device::Cpu if WeightsFolder::of_user().names().is_ok_and(|names| !names.is_empty()) => HEAD_RECIPE,
        Device::Cpu => CPU_RECIPE,
    }))
}

/// Returns the keys that read a folder of images: as the prepared dataset that the user names, or by the names of its files.
fn reading_of_folder(layers: &Layers) -> Vec<(&'static str, Value)> {
    let folder = layers.word("dataset.path").filter(|folder| !folder.is_empty());
    let Some(folder) = folder.filter(|_| is_for_folders(layers.base())) else { return Vec::new() };
    if CloudUrl::is_url(Path::new(&folder)) {
        let mut settings = vec![("dataset.source", Value::String(SourceName::Webdataset.to_string()))];
        if layers.base() != Some(HEAD_RECIPE) {
            settings.push(("dataset.order", Value::String(OrderName::Blocks.to_string())));
        }
        return settings;
    }
    let prepared = layers.word("dataset.prepared").filter(|prepared| !prepared.is_empty());
    if let Some(settings) = prepared.and_then(|prepared| source_settings(Path::new(prepared))) {
        return settings;
    }
    match detect_source(Path::new(folder), names_columns(layers)) {
        source @ (SourceName::LabelsCsv | SourceName::Webdataset | SourceName::Parquet) => {
            vec![("dataset.source", Value::String(source.to_string()))]
        }
        // The names of the subfolders are the labels.
        _ => Vec::new(),
    }
}

/// Returns the numbers of views for a method on a head: the recipe for folders has none, and a user who sets a method wants it to
/// have an effect.
fn views_of_method(layers: &Layers) -> Vec<(&'static str, Value)> {
    let is_of_method = |path: &str| path == "preset" || path.starts_with("method.");
    let keys = ["network.weak_views", "network.strong_views"];
    let sets_views = keys.iter().any(|key| layers.is_set_by_user(key));
    if layers.base() != Some(HEAD_RECIPE) || sets_views || !layers.paths_set_by_user().any(is_of_method) {
        return Vec::new();
    }
    keys.map(|key| (key, Value::Integer(METHOD_VIEWS))).to_vec()
}

/// Returns whether the user names columns, which implies a list of labels.
fn names_columns(layers: &Layers) -> bool {
    layers.is_set_by_user("dataset.path_column") || layers.is_set_by_user("dataset.label_column")
}
