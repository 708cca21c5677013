//! The data of a run that a comparison uses.

use std::collections::BTreeMap;

use calmix_metrics::metrics::Metrics;
use calmix_metrics::predictions::EvalSet;
use calmix_run::result::HeadName;

/// The data of a finished run that a comparison uses.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// Its name, for notes.
    pub name: String,
    /// Every key that affects training, except the seeds, with its value as text.
    pub settings: BTreeMap<String, String>,
    /// Identifies the dataset's files.
    pub fingerprint: String,
    /// The seed of everything random, and that of which labels are kept.
    pub seeds: (u64, u64),
    /// Whether the paper's tables have a row of this setting.
    pub is_papers: bool,
    /// Whether the model was both selected and evaluated on the test split.
    pub chosen_on_test: bool,
    /// The split of the metrics.
    pub on: EvalSet,
    /// The number of samples in that split.
    pub samples: u64,
    /// Which of its heads, if it has heads.
    pub head: Option<HeadName>,
    /// Its metrics before calibration.
    pub metrics: Metrics,
    /// Its metrics after calibration, if any.
    pub calibrated: Option<Metrics>,
}
