//! The file `summary.json`: dataset, method, network and seeds of a run, for readers that do not parse recipes.

use serde::{Deserialize, Serialize};

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// The kind of dataset, such as `cifar10` or `folder`.
    pub dataset: String,
    /// The number of classes.
    pub classes: usize,
    /// The number of labelled training samples.
    pub labelled: usize,
    /// The number of labelled held-out samples.
    pub validation: usize,
    /// The number of unlabelled training samples.
    pub unlabelled: u64,
    /// The base algorithm, such as `fixmatch`. With one vector per sample it is `lr+em` (logistic regression, EM and their
    /// average), or `lr` on the labels alone.
    pub base: String,
    /// The pairing of samples in mixup, such as `calibratemix` or `none`.
    pub pairing: String,
    /// The network, such as `wrn-28-2` or `onnx encoder, output pooler_output`; `none` if a head is trained on the user's
    /// own vectors.
    pub network: String,
    /// The side of its images, in pixels; 0 if it has none.
    pub size: u32,
    /// The number of steps; 0 if its heads are trained in one go.
    pub steps: u64,
    /// The seed of all randomness except the draw of labels.
    pub seed: u64,
    /// The seed of the draw of labels.
    pub label_seed: u64,
    /// The hash of the recipe, without the keys that may change on resuming.
    pub recipe: String,
    /// The built-in recipe that the recipe is based on, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<String>,
}

impl RunSummary {
    /// Describes the network and the size of its images.
    pub fn network_in_words(&self) -> String {
        match self.size {
            0 => "a head on vectors, without a backbone".to_owned(),
            size => format!("{} at {size} pixels", self.network),
        }
    }
}
