//! Which pretrained backbone a head for a folder of images stands on, at which size of images.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use calmix::data::dataset::Dataset;
use calmix::engine::device::Device;
use calmix::engine::frozen_backbone::FrozenBackbone;
use calmix::engine::images::{Normalisation, Size};
use calmix::engine::network::{BottleneckStride, FirstBlock};
use calmix::engine::precision::Precision;
use calmix::engine::predictor::PredictorSettings;
use calmix::io::atomic_file;
use calmix::run::model_info::ModelInfo;
use calmix::run::safe_open;
use calmix::train::recipe::{Layers, Recipe};
use calmix::train::trainer::{TrainError, draw_split};
use calmix::train::weights_folder::{StoredWeights, WeightsFolder};

use crate::beside::beside;
use serde::{Deserialize, Serialize};

use crate::format::{grouped, rough_time};

/// How long the features of a folder may take.
const LIMIT: Duration = Duration::from_mins(10);

/// Sizes of images, the largest first. Larger ones are better, and slower by their area.
const SIZES: [u32; 3] = [224, 160, 128];
/// The size that rates are measured at, and that a larger backbone has to fit at to be taken.
const MEASURED: u32 = 160;
/// Bytes of the longest remembered choice.
const LONGEST_CHOICE: u64 = 4_096;
/// Images of a measurement: two passes.
const IMAGES: usize = 32;

/// A backbone, a size, and what they take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BackboneChoice {
    /// The name of the weights.
    weights: String,
    /// Pixels a side.
    size: u32,
    /// Views a second, as measured.
    rate: f64,
    /// Views to make, if the cache has none.
    views: u64,
}

impl BackboneChoice {
    /// As lines of a recipe.
    pub(crate) fn settings(&self) -> String {
        weights_setting(&self.weights) + &format!("augment.size = {}\n", self.size)
    }

    /// What was chosen, why, and how long it takes, in two lines.
    pub(crate) fn because(&self) -> String {
        let Self { weights, size, rate, views } = self;
        format!(
            "weights {weights} at {size} pixels: the largest at hand whose features take at most {} min\n\
             features of {} views at some {} a second: {}, once for this folder",
            LIMIT.as_secs() / 60,
            grouped(*views),
            grouped(rate.round() as u64),
            rough_time(*views as f64 / rate.max(1e-9))
        )
    }
}

/// Layers with what the pretrained weights say that they name.
pub(crate) fn with_weights(layers: Layers) -> Result<Layers> {
    Ok(layers.pretrained(&WeightsFolder::of_user()).map_err(TrainError::Pretrained)?)
}

/// Where the features of a dataset are kept unless the user says otherwise: beside it.
pub(crate) fn cache(dataset: &Path) -> PathBuf {
    beside(dataset).join("features")
}

/// The line of a recipe that names weights.
pub(crate) fn weights_setting(name: &str) -> String {
    setting("network.weights", name)
}

/// The line of a recipe that names the folder of features.
pub(crate) fn cache_setting(dataset: &Path) -> String {
    setting("network.cache", &cache(dataset).to_string_lossy())
}

/// A line of a recipe.
pub(crate) fn setting(key: &str, value: &str) -> String {
    // A string of JSON is one of TOML.
    format!("{key} = {}\n", serde_json::json!(value))
}

/// How many views pass the backbone of a head: all of what is learnt from, and one of what judges.
fn views(recipe: &Recipe, dataset: &Dataset) -> Result<u64> {
    let counts = draw_split(recipe, dataset)?.counts(dataset)?;
    let unlabelled = recipe.unlabelled_samples(counts.unlabelled);
    let network = &recipe.network;
    let each = 1 + u64::from(network.weak_views) + u64::from(network.strong_views);
    let judging = match recipe.dataset.test.as_str() {
        "" => 0,
        name => dataset.subset(name).map(|ids| ids.end - ids.start)?,
    };
    Ok((counts.labelled + unlabelled) * each + judging)
}

/// The weights at hand; those that cannot be read are passed over, `calmix weights list` says why.
pub(crate) fn at_hand() -> Vec<StoredWeights> {
    let folder = WeightsFolder::of_user();
    let names = folder.names().unwrap_or_default();
    names.iter().filter_map(|name| folder.stored(name).ok()).collect()
}

/// The backbone with the most parameters whose features at 160 pixels fit the limit, and the largest size
/// that does; where none fits, the fastest at the smallest size.
pub(crate) fn choose(
    at_hand: &[StoredWeights],
    recipe: &Recipe,
    dataset: &Dataset,
) -> Result<Option<BackboneChoice>> {
    if at_hand.is_empty() {
        return Ok(None);
    }
    let views = views(recipe, dataset)?;
    let hashes: Vec<&str> = at_hand.iter().map(|stored| stored.blake3.as_str()).collect();
    let key = serde_json::json!([dataset.fingerprint(), hashes, views]).to_string();
    let remembered =
        Path::new(&recipe.network.cache).join(format!("{}.choice.json", ModelInfo::hash(key.as_bytes())));
    if let Some(choice) =
        remember(&remembered).filter(|choice| at_hand.iter().any(|stored| stored.name == choice.weights))
    {
        return Ok(Some(choice));
    }
    let mut rated = Vec::new();
    for stored in at_hand {
        rated.push((stored.name.as_str(), stored.parameters, rate(stored)?));
    }
    let choice = best(&rated, views);
    if let Some(choice) = &choice {
        // Only to save the next run this measurement; whether the folder can be written is for the features to find out.
        let _ = std::fs::create_dir_all(&recipe.network.cache);
        let _ = atomic_file::write(&remembered, serde_json::to_string_pretty(choice)?.as_bytes());
    }
    Ok(choice)
}

/// What was chosen for the same images and weights before: a rate that is measured again is another one, and another size
/// would make all features anew.
fn remember(path: &Path) -> Option<BackboneChoice> {
    let bytes = safe_open::read(path, LONGEST_CHOICE).ok()?;
    let choice: BackboneChoice = serde_json::from_slice(&bytes).ok()?;
    (SIZES.contains(&choice.size) && choice.rate > 0.0).then_some(choice)
}

/// The choice among names, parameters and rates at 160 pixels.
fn best(rated: &[(&str, usize, f64)], views: u64) -> Option<BackboneChoice> {
    let at = |rate: f64, size: u32| rate * (f64::from(MEASURED) / f64::from(size)).powi(2);
    let fits = |rate: f64, size: u32| views as f64 <= at(rate, size) * LIMIT.as_secs_f64();
    let choice = |&(name, _, rate): &(&str, usize, f64), size: u32| BackboneChoice {
        weights: name.to_owned(),
        size,
        rate: at(rate, size),
        views,
    };
    let fitting = rated.iter().filter(|(.., rate)| fits(*rate, MEASURED));
    let largest = fitting.max_by_key(|(_, parameters, _)| *parameters);
    let fastest = || rated.iter().max_by(|a, b| a.2.total_cmp(&b.2));
    let smallest = SIZES[SIZES.len() - 1];
    let taken = largest.or_else(fastest)?;
    let size = SIZES.into_iter().find(|&size| fits(taken.2, size)).unwrap_or(smallest);
    Some(choice(taken, size))
}

/// Views a second of a backbone at 160 pixels, on this machine as it is now.
fn rate(stored: &StoredWeights) -> Result<f64> {
    let side = MEASURED as usize;
    let settings = PredictorSettings {
        architecture: stored.network,
        first_block: FirstBlock::default(),
        stride: BottleneckStride::default(),
        classes: 1,
        size: Size { height: side, width: side },
        normalisation: Normalisation { mean: [0.5; 3], deviation: [0.5; 3] },
        norm_eps: None,
        device: Device::Cpu,
    };
    let backbone =
        FrozenBackbone::new(&settings, Precision::best(Device::Cpu), &std::fs::read(&stored.path)?)?;
    let pixels = vec![127; IMAGES * settings.size.bytes()];
    // The first pass allocates.
    backbone.features(&pixels)?;
    let start = Instant::now();
    backbone.features(&pixels)?;
    Ok(IMAGES as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rated: &[(&str, usize, f64)], views: u64) -> Option<(String, u32)> {
        best(rated, views).map(|choice| (choice.weights, choice.size))
    }

    #[test]
    fn the_largest_backbone_and_size_that_fit_ten_minutes() {
        let both = [("small", 4, 170.0), ("large", 6, 145.0)];
        assert_eq!(chosen(&both, 1_000), Some(("large".into(), 224)));
        // 600 s at 145 a second are 87,000 views at 160 pixels, and 44,387 at 224.
        assert_eq!(chosen(&both, 44_000), Some(("large".into(), 224)));
        assert_eq!(chosen(&both, 60_000), Some(("large".into(), 160)));
        assert_eq!(chosen(&both, 100_000), Some(("small".into(), 160)));
        assert_eq!(chosen(&both, 150_000), Some(("small".into(), 128)));
        assert_eq!(chosen(&both, 10_000_000), Some(("small".into(), 128)));
        assert_eq!(chosen(&[], 1), None);
    }
}
