//! From a dataset to a run that is ready to start: everything that `calmix train --data photos` and
//! `calmix train --features vectors.npz` decide, as one typed pipeline.
//!
//! [`Draft`] chooses the recipe and resolves it; [`prepare_run`] claims the folder of the run, opens or makes the table of the
//! dataset, draws the split, chooses a pretrained backbone and resolves the recipe again with what it found.
//! [`HeadTrainer`](crate::head_trainer::HeadTrainer) trains a head, and `calmix-train` a whole network. [`prepare_vectors`] is
//! the same for vectors that the user already has. The command `calmix train` and the workers of `calmix sweep` go this way.

mod backbone;
mod draft;
mod error;
mod folder_recipe;
mod pretrained_layer;
mod table_settings;
mod vectors;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::default_place::folder_for_output;
use calmix_data::loader::Warn;
use calmix_data::split::LabelSplit;
use calmix_io::disk::WarningDisk;
use calmix_recipe::Resolved;

pub use crate::start_notice::{InsteadOfTest, StartNotice};
pub use backbone::BackboneChoice;
pub use calmix_run::run_folder::{RunFolder, RunPlace};
pub use draft::{CompletedDraft, Draft, trains_head};
pub use error::StartError;
pub use pretrained_layer::with_pretrained;
pub use vectors::prepare_vectors;
pub(crate) use vectors::{FILE_CONTENTS, view_settings};

use crate::error::VectorsError;
use crate::head_runtime::{check_head, runtime};
use crate::table::open_table;

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

/// Claims the folder of a run, opens or makes the table of its dataset, and completes its recipe.
///
/// # Errors
/// If the recipe lacks something, the folder is in use, the dataset cannot be used or is not of the recipe's format, or the
/// recipe is one of a head and ONNX Runtime is missing.
pub fn prepare_run(
    draft: &Draft,
    place: &RunPlace,
    mut context: StartContext<'_>,
) -> Result<PreparedRun, VectorsError> {
    draft.resolved.ready()?;
    if draft.resolved.recipe.has_head() {
        // Before a large dataset is read for nothing.
        check_head(&draft.resolved.recipe)?;
        runtime(&draft.resolved.recipe)?;
    }
    let disk = Arc::new(WarningDisk(Arc::clone(&context.warn)));
    let data = &draft.resolved.recipe.dataset;
    let beside = || folder_for_output(Path::new(&data.path));
    let folder = RunFolder::claim(place, beside, draft.base().unwrap_or("run"), disk)?;
    let dataset = open_table(data, folder.path(), context.stop, &context.warn, &mut *context.notify)?;
    let CompletedDraft { resolved, split, backbone } = draft.complete(&dataset, &mut context)?;
    Ok(PreparedRun { resolved, dataset, split, backbone, folder })
}
