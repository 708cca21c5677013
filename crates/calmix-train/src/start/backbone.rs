//! Chooses the pretrained backbone and the image size of a head for a folder of images.

use std::path::Path;
use std::time::{Duration, Instant};

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_engine::frozen_backbone::FrozenBackbone;
use calmix_engine::precision;
use calmix_engine::predictor::PredictorSettings;
use calmix_io::atomic_file;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_recipe::Recipe;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_run::model_info::ModelInfo;
use calmix_run::weights_folder::{StoredWeights, WeightsFolder};
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::trainer::TrainError;

/// The longest time that computing the features of a folder may take.
pub const LONGEST: Duration = Duration::from_mins(10);

/// Image sizes, the largest first. Larger ones are more accurate; the time grows with the area.
const SIZES: [u32; 3] = [224, 160, 128];
/// The size at which rates are measured, and at which a larger backbone must be fast enough to be chosen.
const MEASURED: u32 = 160;
/// Bytes of the longest remembered choice.
const LONGEST_CHOICE: u64 = 4_096;
/// Images of a measurement: two passes.
const IMAGES: usize = 32;

/// Passes that are timed: the fastest counts, since other programs can only slow a pass down.
const PASSES: usize = 3;

/// A backbone, an image size, and the time they take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackboneChoice {
    /// The name of the weights.
    pub weights: String,
    /// The side of its images, in pixels.
    pub size: u32,
    /// Views per second, as measured.
    pub rate: f64,
    /// Views to compute, if the cache has none.
    pub views: u64,
}

impl BackboneChoice {
    /// The choice as keys of a recipe.
    pub(super) fn settings(&self) -> [(&'static str, Value); 2] {
        let weights = Value::String(self.weights.clone());
        [("network.weights", weights), ("augment.size", Value::Integer(self.size.into()))]
    }
}

/// A backbone to choose, with its rate at 160 pixels.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    name: &'a str,
    /// EfficientNet-Lite before ResNet-50, and among these the one with more parameters: on 300 photos a head on ResNet-50 made
    /// 26 mistakes and one on EfficientNet-Lite2, which has a quarter of its parameters, 14.
    rank: (bool, usize),
    rate: f64,
}

/// The number of views that pass the backbone: all views that a head is trained on, and one of each test image.
fn views(recipe: &Recipe, dataset: &Dataset, split: &LabelSplit) -> Result<u64, TrainError> {
    let counts = split.counts(dataset)?;
    let unlabelled = recipe.unlabelled_samples(counts.unlabelled);
    let network = &recipe.network;
    let each = 1 + u64::from(network.weak_views) + u64::from(network.strong_views);
    let test = match recipe.dataset.test.as_str() {
        "" => 0,
        name => dataset.subset(name).map(|ids| ids.end - ids.start)?,
    };
    Ok((counts.labelled + unlabelled) * each + test)
}

/// The pretrained weights of the user. Those that cannot be read are skipped; `calmix weights list` shows why.
pub fn weights_available() -> Vec<StoredWeights> {
    let folder = WeightsFolder::of_user();
    let names = folder.names().unwrap_or_default();
    names.iter().filter_map(|name| folder.stored(name).ok()).collect()
}

/// Chooses the best backbone whose features at 160 pixels take at most ten minutes, at the largest size that does; if none
/// does, the fastest at the smallest size. The choice is stored beside the features, so that the same command chooses the same.
pub(super) fn choose(
    weights: &[StoredWeights],
    recipe: &Recipe,
    dataset: &Dataset,
    split: &LabelSplit,
    measure_rate: &dyn Fn(&StoredWeights) -> Result<f64, TrainError>,
) -> Result<Option<BackboneChoice>, TrainError> {
    if weights.is_empty() {
        return Ok(None);
    }
    let views = views(recipe, dataset, split)?;
    let hashes: Vec<&str> = weights.iter().map(|stored| stored.blake3.as_str()).collect();
    let key = serde_json::json!([dataset.fingerprint(), hashes, views]).to_string();
    let remembered =
        Path::new(&recipe.network.cache).join(format!("{}.choice.json", ModelInfo::hash(key.as_bytes())));
    let known = |choice: &BackboneChoice| weights.iter().any(|stored| stored.name == choice.weights);
    if let Some(choice) = remembered_choice(&remembered).filter(known) {
        return Ok(Some(choice));
    }
    let mut candidates = Vec::new();
    for stored in weights {
        let rank = (stored.network.is_efficient_net_lite(), stored.parameters);
        candidates.push(Candidate { name: &stored.name, rank, rate: measure_rate(stored)? });
    }
    let choice = best(&candidates, views);
    if let Some(choice) = &choice
        && let Ok(text) = serde_json::to_string_pretty(choice)
    {
        // Only to save the next run this measurement; whether the folder can be written is for the features to find out.
        let _ = std::fs::create_dir_all(&recipe.network.cache);
        let _ = atomic_file::write(&remembered, text.as_bytes());
    }
    Ok(choice)
}

/// Reads the earlier choice for the same images and weights: a new measurement may differ, and another size would compute
/// all features again.
fn remembered_choice(path: &Path) -> Option<BackboneChoice> {
    // Several users may share a cache; another one does not decide which weights are used.
    let bytes = safe_open::read_own(path, LONGEST_CHOICE).ok()?;
    let choice: BackboneChoice = serde_json::from_slice(&bytes).ok()?;
    (SIZES.contains(&choice.size) && choice.rate > 0.0).then_some(choice)
}

fn best(candidates: &[Candidate<'_>], views: u64) -> Option<BackboneChoice> {
    let fitting = candidates.iter().filter(|candidate| fits(candidate.rate, MEASURED, views));
    let fastest = || candidates.iter().max_by(|a, b| a.rate.total_cmp(&b.rate));
    let taken = fitting.max_by_key(|candidate| candidate.rank).or_else(fastest)?;
    let smallest = SIZES[SIZES.len() - 1];
    let size = SIZES.into_iter().find(|&size| fits(taken.rate, size, views)).unwrap_or(smallest);
    let rate = rate_at(taken.rate, size);
    Some(BackboneChoice { weights: taken.name.to_owned(), size, rate, views })
}

/// Views per second at a size, of a rate at 160 pixels: the time grows with the area.
fn rate_at(rate: f64, size: u32) -> f64 {
    rate * (f64::from(MEASURED) / f64::from(size)).powi(2)
}

fn fits(rate: f64, size: u32, views: u64) -> bool {
    views as f64 <= rate_at(rate, size) * LONGEST.as_secs_f64()
}

/// Measures the views per second of a backbone at 160 pixels, on this machine.
///
/// # Errors
/// If the weights cannot be read.
pub fn measure_rate(stored: &StoredWeights) -> Result<f64, TrainError> {
    let model = ModelSpec::new(stored.network, MEASURED);
    let settings = PredictorSettings { model, classes: 1, device: Device::Cpu };
    let weights = std::fs::read(&stored.path).map_err(|error| FileError::new(&stored.path, error))?;
    let backbone = FrozenBackbone::new(&settings, precision::best(Device::Cpu), &weights)?;
    let pixels = vec![127; IMAGES * model.image_bytes()];
    // The first pass allocates.
    backbone.features(&pixels)?;
    let mut fastest = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        backbone.features(&pixels)?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok(IMAGES as f64 / fastest.max(1e-9))
}

#[cfg(test)]
#[path = "../../../calmix-core/tests/tier/tier.rs"]
mod tier;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::chown;

    use super::*;

    const SMALL: Candidate<'_> = Candidate { name: "small", rank: (true, 4), rate: 170.0 };
    const LARGE: Candidate<'_> = Candidate { name: "large", rank: (true, 6), rate: 145.0 };

    fn chosen(candidates: &[Candidate<'_>], views: u64) -> Option<(String, u32)> {
        best(candidates, views).map(|choice| (choice.weights, choice.size))
    }

    #[test]
    fn backbone_is_the_largest_that_fits_ten_minutes() {
        let both = [SMALL, LARGE];
        assert_eq!(chosen(&both, 1_000), Some(("large".into(), 224)));
        // 600 s at 145 views per second are 87,000 views at 160 pixels, and 44,387 at 224.
        assert_eq!(chosen(&both, 44_000), Some(("large".into(), 224)));
        assert_eq!(chosen(&both, 60_000), Some(("large".into(), 160)));
        assert_eq!(chosen(&both, 100_000), Some(("small".into(), 160)));
        assert_eq!(chosen(&both, 150_000), Some(("small".into(), 128)));
        assert_eq!(chosen(&both, 10_000_000), Some(("small".into(), 128)));
        assert_eq!(chosen(&[], 1), None);
    }

    #[test]
    fn choice_of_another_user_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("choice.json");
        let choice = best(&[SMALL], 1_000).unwrap();
        fs::write(&file, serde_json::to_vec(&choice).unwrap()).unwrap();
        assert_eq!(remembered_choice(&file).map(|choice| choice.weights), Some("small".to_owned()));
        if chown(&file, Some(65_534), None).is_err() {
            return tier::skipped("only root can give a file to another user");
        }
        assert!(remembered_choice(&file).is_none());
    }

    /// However fast the machine happens to be, a ResNet-50 does not replace an EfficientNet-Lite that fits.
    #[test]
    fn backbone_does_not_depend_on_the_load_between_families() {
        let resnet = |rate| Candidate { name: "resnet", rank: (false, 24), rate };
        for rate in [10.0, 145.0, 1_000.0] {
            assert_eq!(chosen(&[LARGE, resnet(rate)], 1_000).map(|(name, _)| name), Some("large".to_owned()));
        }
    }
}
