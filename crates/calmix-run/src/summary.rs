//! `summary.json`: dataset, method, network and seeds of a run, for readers that do not parse recipes.

use serde::{Deserialize, Serialize};

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// The kind of dataset: `cifar10`, `folder`.
    pub dataset: String,
    /// The number of its classes.
    pub classes: usize,
    /// The number of labelled samples that are trained on.
    pub labelled: usize,
    /// The number of labelled samples that are held out.
    pub validation: usize,
    /// The number of unlabelled samples that are trained on.
    pub unlabelled: u64,
    /// The base algorithm: `fixmatch`. With one vector per sample `lr+em`, logistic regression, EM and their average, or
    /// `lr` on the labels alone.
    pub base: String,
    /// The pairing of samples for mixup: `calibratemix`, `none`.
    pub pairing: String,
    /// The network: `wrn-28-2`; `onnx encoder, output pooler_output`; `none` if a head is trained on vectors that the user already
    /// has.
    pub network: String,
    /// Pixels of a side of its images; 0 if there are none.
    pub size: u32,
    /// Steps of the run; 0 if its heads are trained at once.
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

impl RunSummary {
    /// The network and the size of its images, in words.
    pub fn network_in_words(&self) -> String {
        match self.size {
            0 => "a head on vectors, without a backbone".to_owned(),
            size => format!("{} at {size} pixels", self.network),
        }
    }
}
