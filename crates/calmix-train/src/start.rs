//! From a folder of images to a run: everything that `calmix train --data photos` decides, as one typed pipeline.
//!
//! [`Draft`] chooses the recipe and resolves it; [`prepare_run`] claims the folder of the run, opens or makes the table of the
//! dataset, draws the split, chooses a pretrained backbone and resolves the recipe again with what it found;
//! [`Trainer::start_prepared`](crate::trainer::Trainer::start_prepared) trains. The command `calmix train`, the workers of
//! `calmix sweep` and a program that calls [`train_folder`] all go this way:
//!
//! ```no_run
//! let trained = calmix_train::train_folder("photos")?;
//! println!("{}: {:?}", trained.folder.display(), trained.outcome);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backbone;
mod draft;
mod error;
mod folder_recipe;
mod table_settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::default_place::folder_for_output;
use calmix_data::loader::Warn;
use calmix_data::split::LabelSplit;
use calmix_io::disk::WarningDisk;

pub use backbone::{BackboneChoice, LONGEST as LONGEST_FEATURES, measure_rate, weights_available};
pub use calmix_run::run_folder::{RunFolder, RunPlace};
pub use calmix_vectors::start_notice::{InsteadOfTest, StartNotice};
pub use draft::{CompletedDraft, Draft};
pub use error::StartError;
pub use folder_recipe::folder_recipe;

use crate::trainer::{Outcome, TrainError, Trainer};
use calmix_recipe::{Layers, Resolved};
use calmix_run::weights_folder::StoredWeights;
use calmix_vectors::table::open_table;

/// What a run needs from its surroundings while it is prepared.
pub struct StartContext<'a> {
    /// Ends a preparation when it becomes true.
    pub stop: &'a AtomicBool,
    /// Receives warnings at once, while the preparation waits for storage. Called from any thread.
    pub warn: Warn,
    /// Measures how many views per second a backbone computes at 160 pixels: [`measure_rate`], unless a test fixes it.
    pub measure_rate: &'a dyn Fn(&StoredWeights) -> Result<f64, TrainError>,
    /// Receives the events of the preparation.
    pub notify: Box<dyn FnMut(StartNotice<'_>) + 'a>,
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

/// The result of [`train_folder`].
#[derive(Debug)]
pub struct TrainedRun {
    /// The folder of the run.
    pub folder: PathBuf,
    /// How it ended.
    pub outcome: Outcome,
}

/// Trains on a folder of images as `calmix train --data FOLDER` does, without output. The run is in `runs/`.
///
/// # Errors
/// If the folder is not a dataset, or the run fails.
pub fn train_folder(folder: impl AsRef<Path>) -> Result<TrainedRun, TrainError> {
    let data = std::path::absolute(folder.as_ref())
        .map_err(|error| StartError::no_folder(folder.as_ref(), &error))?;
    let Some(path) = data.to_str() else {
        let problem = "its path is not UTF-8; rename the folder".to_owned();
        return Err(StartError::NoFolder { folder: data, problem }.into());
    };
    let draft = Draft::new(Layers::new().set_to("dataset.path", path.to_owned()))?;
    let stop = AtomicBool::new(false);
    let context = StartContext {
        stop: &stop,
        warn: Arc::new(|_| {}),
        measure_rate: &measure_rate,
        notify: Box::new(|_| {}),
    };
    let prepared = prepare_run(&draft, &RunPlace::Next { name: None }, context)?;
    let folder = prepared.folder.path().to_owned();
    let outcome = Trainer::new(&stop).start_prepared(prepared)?;
    Ok(TrainedRun { folder, outcome })
}

/// Claims the folder of a run, opens or makes the table of its dataset, and completes its recipe.
///
/// # Errors
/// If the recipe lacks something, the folder is in use, or the dataset cannot be used or is not of the recipe's format.
pub fn prepare_run(
    draft: &Draft,
    place: &RunPlace,
    mut context: StartContext<'_>,
) -> Result<PreparedRun, TrainError> {
    draft.resolved.ready()?;
    let disk = Arc::new(WarningDisk(Arc::clone(&context.warn)));
    let data = &draft.resolved.recipe.dataset;
    let beside = || folder_for_output(Path::new(&data.path));
    let folder = RunFolder::claim(place, beside, draft.base().unwrap_or("run"), disk)?;
    let dataset = open_table(data, folder.path(), context.stop, &context.warn, &mut *context.notify)?;
    let CompletedDraft { resolved, split, backbone } = draft.complete(&dataset, &mut context)?;
    Ok(PreparedRun { resolved, dataset, split, backbone, folder })
}
