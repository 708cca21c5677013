//! A run that is ready to start, and what its preparation needs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::loader::Warn;
use calmix_data::split::LabelSplit;
use calmix_recipe::Resolved;
use calmix_run::run_folder::RunFolder;

use super::backbone::BackboneChoice;
use crate::start_notice::StartNotice;

/// What a run needs from its surroundings while it is prepared.
pub struct StartContext<'a> {
    /// Ends a preparation when it becomes true.
    pub stop: &'a AtomicBool,
    /// Receives warnings at once, while the preparation waits for storage. Called from any thread.
    pub warn: Warn,
    /// Receives the events of the preparation.
    pub notify: Box<dyn FnMut(StartNotice<'_>) + 'a>,
}

impl<'a> StartContext<'a> {
    /// A context whose warnings and events are not shown.
    pub fn quiet(stop: &'a AtomicBool) -> Self {
        Self { stop, warn: Arc::new(|_| {}), notify: Box::new(|_| {}) }
    }
}

/// A run that is ready to start.
#[derive(Debug)]
pub struct PreparedRun {
    /// The recipe, with everything that the dataset and the weights decide.
    pub resolved: Resolved,
    /// The dataset.
    pub dataset: Dataset,
    /// Which labels are trained on, and which are held out.
    pub split: LabelSplit,
    /// The backbone, if calmix chose it.
    pub backbone: Option<BackboneChoice>,
    /// The folder of the run. Dropped before the run starts, it is removed again.
    pub folder: RunFolder,
}
