//! Chooses the pretrained backbone and the image size of a head for a folder of images, by a fixed rule on the number of views,
//! so that the same command makes the same choice on every machine.
//!
//! Larger images and larger backbones are more accurate, and take longer. The rule keeps the time of the features at about five
//! minutes on two cores, up to 50,000 views:
//!
//! | views | backbone | pixels |
//! |---|---|---|
//! | up to 10,000 | the best | 224 |
//! | up to 20,000 | the best | 160 |
//! | up to 50,000 | the smallest | 160 |
//! | more | the smallest | 128 |
//!
//! The best backbone is an EfficientNet-Lite before any other, and the one with more parameters before smaller ones; the smallest
//! is the EfficientNet-Lite with the fewest parameters, or any network if there is none.

use std::cmp::Reverse;

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_recipe::Recipe;
use calmix_run::pretrained::weights_folder::{StoredWeights, WeightsFolder};
use toml::Value;

use crate::error::LifecycleError;

const MAX_VIEWS_OF_BEST: u64 = 20_000;
const MAX_VIEWS_AT_224: u64 = 10_000;
const MAX_VIEWS_AT_160: u64 = 50_000;

/// A backbone, an image size, and the number of views to compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackboneChoice {
    pub weights: String,
    pub size: u32,
    /// The number of views to compute if none is cached.
    pub views: u64,
}

impl BackboneChoice {
    pub(super) fn settings(&self) -> [(&'static str, Value); 2] {
        let weights = Value::String(self.weights.clone());
        [("network.weights", weights), ("augment.size", Value::Integer(self.size.into()))]
    }
}

#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    name: &'a str,
    /// Whether this is an EfficientNet-Lite. The family comes first: on 300 photos a head on ResNet-50 made 26 mistakes, and one
    /// on EfficientNet-Lite2, which has a quarter of its parameters, 14.
    is_lite: bool,
    parameters: usize,
}

impl<'a> From<&'a StoredWeights> for Candidate<'a> {
    fn from(stored: &'a StoredWeights) -> Self {
        let is_lite = stored.network.is_efficient_net_lite();
        Self { name: &stored.name, is_lite, parameters: stored.parameters }
    }
}

/// Counts the views that pass through the backbone: all views that a head is trained on, and one of each test image.
fn views(recipe: &Recipe, dataset: &Dataset, split: &LabelSplit) -> Result<u64, LifecycleError> {
    let counts = split.counts(dataset)?;
    let unlabelled = recipe.unlabelled_samples(counts.unlabelled);
    let network = &recipe.network;
    let each = 1 + u64::from(network.weak_views) + u64::from(network.strong_views);
    let test = match recipe.dataset.test.as_str() {
        "" => 0,
        name => dataset.subset(name).map(|ids| ids.end - ids.start)?,
    };
    // The labelled samples are then among the unlabelled ones, and each passes once.
    let has_every_sample = recipe.labels.include_labelled && unlabelled == counts.unlabelled;
    let labelled = if has_every_sample { 0 } else { counts.labelled };
    Ok((labelled + unlabelled) * each + test)
}

/// Lists the user's pretrained weights. Those that cannot be read are skipped; `calmix weights list` shows why.
pub(super) fn weights_available() -> Vec<StoredWeights> {
    let folder = WeightsFolder::of_user();
    let names = folder.names().unwrap_or_default();
    names.iter().filter_map(|name| folder.stored(name).ok()).collect()
}

/// Chooses among the user's weights; `None` if there are none.
pub(super) fn choose(
    weights: &[StoredWeights],
    recipe: &Recipe,
    dataset: &Dataset,
    split: &LabelSplit,
) -> Result<Option<BackboneChoice>, LifecycleError> {
    if weights.is_empty() {
        return Ok(None);
    }
    Ok(choose_for(weights, views(recipe, dataset, split)?))
}

/// Chooses among the user's weights for a number of views; `None` if there are none.
pub(super) fn choose_for(weights: &[StoredWeights], views: u64) -> Option<BackboneChoice> {
    let candidates: Vec<Candidate<'_>> = weights.iter().map(Candidate::from).collect();
    choose_by_views(&candidates, views)
}

/// Applies the rule at the top of this file.
fn choose_by_views(candidates: &[Candidate<'_>], views: u64) -> Option<BackboneChoice> {
    // Ties are broken by name.
    let best = candidates.iter().min_by_key(|one| (Reverse((one.is_lite, one.parameters)), one.name))?;
    let smallest = candidates.iter().min_by_key(|one| (!one.is_lite, one.parameters, one.name))?;
    let chosen = if views <= MAX_VIEWS_OF_BEST { best } else { smallest };
    let size = if views <= MAX_VIEWS_AT_224 {
        224
    } else if views <= MAX_VIEWS_AT_160 {
        160
    } else {
        128
    };
    Some(BackboneChoice { weights: chosen.name.to_owned(), size, views })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Candidate<'_> = Candidate { name: "small", is_lite: true, parameters: 4 };
    const LARGE: Candidate<'_> = Candidate { name: "large", is_lite: true, parameters: 6 };
    const RESNET: Candidate<'_> = Candidate { name: "resnet", is_lite: false, parameters: 24 };
    const TINY: Candidate<'_> = Candidate { name: "tiny", is_lite: false, parameters: 1 };

    fn chosen(candidates: &[Candidate<'_>], views: u64) -> Option<(String, u32)> {
        choose_by_views(candidates, views).map(|choice| (choice.weights, choice.size))
    }

    #[test]
    fn backbone_follows_from_the_number_of_views() {
        let all = [SMALL, RESNET, TINY, LARGE];
        for (views, name, size) in [
            (0, "large", 224),
            (10_000, "large", 224),
            (10_001, "large", 160),
            (20_000, "large", 160),
            (20_001, "small", 160),
            (50_000, "small", 160),
            (50_001, "small", 128),
            (u64::MAX, "small", 128),
        ] {
            assert_eq!(chosen(&all, views), Some((name.to_owned(), size)), "{views}");
        }
        assert_eq!(chosen(&[], 1), None);
    }

    #[test]
    fn other_networks_are_chosen_without_a_lite_one() {
        assert_eq!(chosen(&[TINY, RESNET], 1_000), Some(("resnet".to_owned(), 224)));
        assert_eq!(chosen(&[RESNET, TINY], 30_000), Some(("tiny".to_owned(), 160)));
    }

    #[test]
    fn order_of_the_folder_does_not_decide() {
        let other = Candidate { name: "another", ..LARGE };
        for both in [[LARGE, other], [other, LARGE]] {
            for views in [1, 200_000] {
                assert_eq!(chosen(&both, views).map(|(name, _)| name), Some("another".to_owned()));
            }
        }
    }
}
