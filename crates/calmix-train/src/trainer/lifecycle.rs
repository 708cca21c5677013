//! A run from its beginning to its end: opening, training loop, checkpoints, events, and result.

pub(super) mod begin_run;
pub(super) mod checkpoint_files;
pub(super) mod finish;
pub(super) mod open_run;
pub(super) mod run_log;
pub(super) mod save;
pub(super) mod train_loop;

use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_recipe::Resolved;
use calmix_run::checkpoint::FoundCheckpoint;
use calmix_run::events::{Finished, Note};
use calmix_run::run::Run;
use serde::{Deserialize, Serialize};

use crate::trainer::data::TrainData;

/// The run that rank 0 has opened, or found to be finished.
pub(crate) enum RankZeroRun {
    Run(Box<OpenedRun>),
    /// A run that was finished before.
    Finished(Finished),
}

/// The folder of a new run.
pub(crate) enum NewRun<'a> {
    /// A folder that is empty or does not exist.
    Folder(&'a Path),
    /// A folder that this process has locked, with its open dataset and its split.
    Prepared { run: Run, table: Box<(Dataset, LabelSplit)> },
}

/// The parts of a run that every process has opened.
pub(crate) struct OpenedRun {
    pub(crate) recipe: Resolved,
    pub(crate) data: TrainData,
    pub(crate) found: Option<FoundCheckpoint>,
    pub(crate) run: Option<Run>,
    pub(crate) notes: Vec<Note>,
}

/// The message with which rank 0 tells the others what to open.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunBroadcast {
    pub(crate) recipe: String,
    pub(crate) finished: Option<Finished>,
}

impl RunBroadcast {
    pub(crate) fn of(lead: &RankZeroRun) -> Self {
        match lead {
            RankZeroRun::Finished(finished) => {
                Self { recipe: String::new(), finished: Some(finished.clone()) }
            }
            RankZeroRun::Run(opened) => Self { recipe: opened.recipe.to_toml(), finished: None },
        }
    }
}
