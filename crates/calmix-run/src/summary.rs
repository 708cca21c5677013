//! What a run is, in a few typed lines: `summary.json`, for readers that know no recipe.

use serde::{Deserialize, Serialize};

/// What a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// The kind of dataset: `cifar10`, `folder`.
    pub dataset: String,
    /// How many classes it has.
    pub classes: usize,
    /// How many labelled samples are trained on.
    pub labelled: usize,
    /// How many labelled samples are held out.
    pub validation: usize,
    /// How many unlabelled samples are trained on.
    pub unlabelled: u64,
    /// The base algorithm: `fixmatch`.
    pub base: String,
    /// Who is mixed with whom: `calibratemix`, `none`.
    pub pairing: String,
    /// The network: `wrn-28-2`.
    pub network: String,
    /// Pixels of a side of its images.
    pub size: u32,
    /// Steps of the run.
    pub steps: u64,
    /// The seed of everything random, except which labels are kept.
    pub seed: u64,
    /// The seed of which labels are kept.
    pub label_seed: u64,
    /// The hash of the recipe, without what may change on resuming.
    pub recipe: String,
    /// The built-in recipe that the recipe was made from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<String>,
}
