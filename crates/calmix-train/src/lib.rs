//! The trainer of whole networks: from a dataset and a recipe to a calibrated model.
//!
//! | question | module |
//! |---|---|
//! | how does it train, and how is a run resumed? | [`trainer`] |
//! | how does a program train on a folder of images, with one call? | [`train_folder()`] |
//! | which processes of a run did a launcher start? | [`launch`] |
//!
//! The network, its data and the number of steps are in the recipe ([`calmix_recipe`]). [`calmix_heads`] prepares runs
//! ([`calmix_lifecycle::start`]) and trains heads. The files of a run are in [`calmix_run`].
#![forbid(unsafe_code)]

pub mod trainer;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use calmix_engine::device;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{Draft, RunPlace, StartContext, StartError, prepare_run};
use calmix_recipe::Layers;

pub use calmix_dist::launch;

use trainer::{Outcome, TrainError, Trainer};

#[derive(Debug)]
pub struct TrainedRun {
    pub folder: PathBuf,
    pub outcome: Outcome,
}

/// Trains on a folder of images like `calmix train --data FOLDER`, without output. The run is in `runs/`.
///
/// ```no_run
/// let trained = calmix_train::train_folder("photos")?;
/// println!("{}: {:?}", trained.folder.display(), trained.outcome);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the folder is not a dataset, or the run fails.
pub fn train_folder(folder: impl AsRef<Path>) -> Result<TrainedRun, TrainError> {
    let folder = folder.as_ref();
    let data = std::path::absolute(folder).map_err(|error| refused(folder, error.to_string()))?;
    let path =
        data.to_str().ok_or_else(|| refused(&data, "its path is not UTF-8; rename the folder".to_owned()))?;
    let draft = Draft::new(Layers::new().set_to("dataset.path", path.to_owned()), device::fastest)?;
    if draft.resolved.recipe.has_head() {
        calmix_heads::trainer::check(&draft.resolved.recipe)?;
    }
    let stop = AtomicBool::new(false);
    let prepared = prepare_run(&draft, &RunPlace::Next { name: None }, StartContext::quiet(&stop))?;
    let folder = prepared.folder.path().to_owned();
    let request = RunRequest::new(&stop);
    let outcome = if prepared.resolved.recipe.has_head() {
        calmix_heads::trainer::start(request, prepared)?
    } else {
        Trainer::new(request).start_prepared(prepared)?
    };
    Ok(TrainedRun { folder, outcome })
}

fn refused(folder: &Path, problem: String) -> LifecycleError {
    StartError::NoFolder { folder: folder.to_owned(), problem }.into()
}
