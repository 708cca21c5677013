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
mod run_folder;
mod shared_table;
mod table;
mod table_settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::loader::Warn;
use calmix_data::prepare::Findings;
use calmix_data::split::LabelSplit;
use calmix_io::disk::WarningDisk;

pub use backbone::{BackboneChoice, LONGEST as LONGEST_FEATURES, measure_rate, weights_available};
pub use draft::{CompletedDraft, Draft};
pub use error::StartError;
pub use folder_recipe::folder_recipe;
pub use run_folder::{RunFolder, RunPlace};

use crate::trainer::{Outcome, TrainError, Trainer};
use calmix_recipe::{Layers, Resolved};
use calmix_run::weights_folder::StoredWeights;

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

/// An event of the preparation of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartNotice<'a> {
    /// The files of the dataset are about to be read.
    Reading {
        /// The folder of the dataset.
        folder: &'a Path,
    },
    /// Files were read.
    Read {
        /// Files so far.
        files: u64,
        /// All files, once they are counted.
        total: Option<u64>,
    },
    /// The files have been read, or reading them has ended.
    ReadingEnded,
    /// The table of an earlier run, or of `calmix prepare`, serves this run too.
    SharedTable {
        /// Where it was found.
        table: &'a Path,
        /// Where this run has it.
        own: &'a Path,
    },
    /// The scan of a new table found problems.
    Scanned {
        /// What it found.
        findings: &'a Findings,
        /// The table, which has the whole list.
        table: &'a Path,
    },
    /// The dataset has no test split.
    NoTestSplit {
        /// What the model is evaluated on instead.
        evaluated_on: InsteadOfTest,
    },
}

/// What a model is evaluated on if the dataset has no test split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsteadOfTest {
    /// The split `val`, which also fits the calibrator.
    ValidationSplit,
    /// Every label, by a head that was trained without it.
    OutOfFold,
    /// Labels that are held out from training.
    HeldOut,
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
    let folder = RunFolder::claim(place, draft, disk)?;
    let dataset = table::open(&draft.resolved.recipe.dataset, folder.path(), &mut context)?;
    let CompletedDraft { resolved, split, backbone } = draft.complete(&dataset, &mut context)?;
    Ok(PreparedRun { resolved, dataset, split, backbone, folder })
}
