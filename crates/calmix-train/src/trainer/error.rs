//! Why a run cannot begin, go on or end.

use std::path::PathBuf;

use calmix_core::calibration::CalibrationError;
use calmix_core::samples::StateError;
use calmix_data::error::DataError;
use calmix_data::loader::LoadError;
use calmix_engine::error::EngineError;

use crate::checkpoint::CheckpointError;
use crate::evaluate::{PredictionsError, TensorsError};
use crate::recipe::{Difference, RecipeError};
use crate::run::RunError;
use crate::sink::SinkError;

/// Why a run stopped, or did not begin. What was kept before stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The folder of the run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the dataset or of the run.
    #[error(transparent)]
    File(#[from] DataError),
    /// Its checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A batch, with the sample that is to blame.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The engine; also a loss that is not finite.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Somebody who is told what happens.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Predictions.
    #[error(transparent)]
    Predictions(#[from] PredictionsError),
    /// Figures.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// What a checkpoint says of the state of samples or the method.
    #[error(
        "the checkpoint of step {step}: {problem}; it was made by another version, or for another method"
    )]
    State {
        /// Its step.
        step: u64,
        /// What is wrong.
        problem: StateProblem,
    },
    /// The run was stopped before its recipe was written.
    #[error("{}: this run was stopped before it began; begin it again with its recipe", .path.display())]
    Unborn {
        /// Its folder.
        path: PathBuf,
    },
    /// A resumed run would learn something else.
    #[error("{}: this would be another run: {}; begin a new one for that. {}", .path.display(), listed(.changes), may_change())]
    Changed {
        /// The folder of the run.
        path: PathBuf,
        /// Every key that may not change and would.
        changes: Vec<Difference>,
    },
    /// The dataset is not the one that the run began with.
    #[error(
        "{}: the dataset was {before} when the run began and is {now} now; put back the files that it was prepared \
         from, or begin a new run", .path.display()
    )]
    OtherDataset {
        /// The folder of the run.
        path: PathBuf,
        /// The fingerprint then.
        before: String,
        /// The fingerprint now.
        now: String,
    },
    /// Too many steps were not finite.
    #[error(
        "step {step}: {problem}; that makes {skips} skipped steps, and train.non_finite_skips allows no more"
    )]
    TooManySkips {
        /// The step.
        step: u64,
        /// What was not finite.
        problem: String,
        /// How many steps were skipped.
        skips: u32,
    },
    /// A recipe that this version cannot run.
    #[error("{0}")]
    Unsupported(String),
}

/// What is wrong with the state in a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateProblem {
    /// Its tensors.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// Its samples.
    #[error(transparent)]
    Samples(#[from] StateError),
    /// Its JSON.
    #[error("its state cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

fn listed(changes: &[Difference]) -> String {
    changes
        .iter()
        .map(|change| format!("{} was {} and would be {}", change.path, change.old, change.new))
        .collect::<Vec<_>>()
        .join("; ")
}

fn may_change() -> String {
    let free = crate::recipe::may_change();
    format!("What may change: {}", free.join(", "))
}
