//! The training of a network, from a recipe and a dataset to a calibrated model.
//!
//! A run that is killed at any moment and resumed ends with the same bits in every file, except for times. The necessary state is
//! in the checkpoints (`trainer/lifecycle/checkpoint_files.rs` lists it); everything else is a function of the recipe, the data
//! and the step.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use calmix_lifecycle::request::RunRequest;
//! use calmix_recipe::Layers;
//! use calmix_run::sink::{ProgressStyle, Progress};
//! use calmix_train::trainer::{Outcome, Trainer};
//!
//! let recipe = Layers::new().recipe("cpu-cifar10").set("dataset.path=cifar-10-batches-bin").resolve()?;
//! let run = Path::new("runs/first");
//! // A handler of Ctrl-C sets it: the run stops after the step and saves its state.
//! let stop = AtomicBool::new(false);
//! let terminal = Progress::new(std::io::stderr(), ProgressStyle::Plain, recipe.recipe.train.steps);
//! let mut outcome = Trainer::new(RunRequest::new(&stop).sink(terminal)).start(&recipe, run)?;
//! if let Outcome::Stopped { step } = outcome {
//!     println!("stopped after {step} steps");
//!     outcome = Trainer::new(RunRequest::new(&stop)).resume(run, None)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod data;
mod error;
mod eval;
mod lifecycle;
mod ranks;
mod step;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use calmix_dist::{LaunchInfo, ProcessGroup};

use calmix_engine::device;
use calmix_run::read;
use calmix_run::run::{Paths, Run};

pub use calmix_lifecycle::evaluation::EvalOutput;
pub use calmix_lifecycle::request::threads;
pub use calmix_run::result::Outcome;
pub use error::{StateProblem, TrainError};
pub use eval::reevaluate::evaluate_run;
pub use step::StepPhase;
pub use step::step_traffic::StepTraffic;

use calmix_lifecycle::changes::check_list_unchanged;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::PreparedRun;
use calmix_recipe::{Recipe, Resolved};
use lifecycle::{NewRun, RankZeroRun, RunBroadcast};
use ranks::collect_results::broadcast_result;
use ranks::find_checkpoint::find_checkpoint;
use ranks::layout::LocalProcesses;
use step::Watch;

/// Starts and resumes runs of whole networks.
pub struct Trainer<'a> {
    request: RunRequest<'a>,
    processes: ProcessGroup,
    local: LocalProcesses,
    watch: Watch,
    /// The hash of the request, which must be the same in all processes; `None` to compare the recipe itself.
    recipe_hash: Option<String>,
}

impl<'a> Trainer<'a> {
    /// Creates a trainer in one process. When the stop flag of the request becomes true, the run stops after the current step and
    /// saves its state.
    pub fn new(request: RunRequest<'a>) -> Self {
        Self {
            request,
            processes: ProcessGroup::alone(),
            local: LocalProcesses::default(),
            watch: Watch::default(),
            recipe_hash: None,
        }
    }

    /// Joins the other processes of a launcher, which must all do the same. Rank 0 writes the run folder and calls the sinks.
    ///
    /// # Errors
    /// If the processes do not connect within the recipe's timeout.
    pub fn join(self, launch: &LaunchInfo, recipe: &Recipe) -> Result<Self, TrainError> {
        let train = &recipe.train;
        let device = train.device.or_else(device::fastest);
        let device = device.of_local_rank(launch.local_rank, device::visible_gpus());
        let timeout = Duration::from_secs_f64(train.timeout);
        let processes = ProcessGroup::connect(launch, device::torch(device), timeout)?;
        let local = LocalProcesses { rank: launch.local_rank, processes: launch.local_world };
        Ok(Self { processes, local, ..self })
    }

    /// Sets the hash to compare among processes, if the request does not contain the whole recipe.
    #[must_use]
    pub fn recipe_hash(self, hash: String) -> Self {
        Self { recipe_hash: Some(hash), ..self }
    }

    /// Sets a hook that is called before every phase of every step.
    #[must_use]
    pub fn watched(self, watch: impl Fn(StepPhase, u64) + Send + Sync + 'static) -> Self {
        Self { watch: Watch(Arc::new(watch)), ..self }
    }

    /// Starts a run in a folder that does not exist, is empty, or has a run that was killed before it began.
    ///
    /// # Errors
    /// If the recipe cannot be trained, the folder is in use, the dataset cannot be used, or the training fails.
    pub fn start(self, recipe: &Resolved, folder: &Path) -> Result<Outcome, TrainError> {
        let claimed = self.leads().then(|| self.begin_new(recipe, folder));
        self.open_and_train(claimed, Some(recipe), folder)
    }

    /// Starts a run that [`prepare_run`](calmix_lifecycle::start::prepare_run) has prepared, or resumes it if it has begun.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`resume`](Self::resume).
    pub fn start_prepared(self, prepared: PreparedRun) -> Result<Outcome, TrainError> {
        let PreparedRun { resolved, dataset, split, mut folder, .. } = prepared;
        let claimed = match folder.take_lock() {
            Some(run) => {
                let from = NewRun::Prepared { run, table: Box::new((dataset, split)) };
                self.open_new(resolved.clone(), from, self.processes.size()).map(Claimed::New)
            }
            None => check_list_unchanged(&resolved, &split, folder.path())
                .map_err(TrainError::from)
                .and_then(|()| self.begun(folder.path())),
        };
        // `folder` must live until here: dropping it removes the folder of a run that has not begun.
        self.open_and_train(Some(claimed), Some(&resolved), folder.path())
    }

    /// Resumes a run from its newest checkpoint, or from its beginning if it has none, with its own recipe or with one that
    /// differs only in keys that may change.
    ///
    /// # Errors
    /// If there is no run, it is in use, its checkpoints are damaged, the recipe or the dataset has changed, or the training
    /// fails.
    pub fn resume(self, folder: &Path, recipe: Option<&Resolved>) -> Result<Outcome, TrainError> {
        let claimed = self.leads().then(|| self.begun(folder));
        self.open_and_train(claimed, recipe, folder)
    }

    /// Starts a run, or resumes it if it has begun. For launchers, which start the same command again.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`resume`](Self::resume).
    pub fn start_or_resume(self, recipe: &Resolved, folder: &Path) -> Result<Outcome, TrainError> {
        let claimed = self.leads().then(|| {
            if read::has_begun(folder) { self.begun(folder) } else { self.begin_new(recipe, folder) }
        });
        self.open_and_train(claimed, Some(recipe), folder)
    }

    /// Creates the folder of a run that several processes of this machine will resume from its beginning.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn create(self, prepared: PreparedRun, processes: usize) -> Result<PathBuf, TrainError> {
        let PreparedRun { resolved, dataset, split, mut folder, .. } = prepared;
        let local = LocalProcesses { rank: 0, processes };
        let trainer = Self { local, ..self };
        if let Some(run) = folder.take_lock() {
            let from = NewRun::Prepared { run, table: Box::new((dataset, split)) };
            drop(trainer.open_new(resolved, from, processes)?);
        }
        Ok(folder.path().to_owned())
    }

    fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    fn begun(&self, folder: &Path) -> Result<Claimed, TrainError> {
        Ok(Claimed::Begun(self.request.open(folder)?))
    }

    fn begin_new(&self, recipe: &Resolved, folder: &Path) -> Result<Claimed, TrainError> {
        self.open_new(recipe.clone(), NewRun::Folder(folder), self.processes.size()).map(Claimed::New)
    }

    /// Trains a run. Every rank calls it: rank 0 opens the run that it has claimed, and the others follow.
    fn open_and_train(
        self,
        claimed: Option<Result<Claimed, TrainError>>,
        recipe: Option<&Resolved>,
        folder: &Path,
    ) -> Result<Outcome, TrainError> {
        let processes = &self.processes;
        let resumes = as_text(claimed.as_ref(), |claimed| matches!(claimed, Claimed::Begun(_)));
        let resumes = broadcast_result(processes, resumes);
        let claimed = claimed.transpose()?;
        let mut found = None;
        if resumes? {
            found = find_checkpoint(processes, &Paths::new(folder).checkpoints())?;
        }
        let lead = claimed.map(|claimed| match claimed {
            Claimed::New(lead) => Ok(lead),
            Claimed::Begun(run) => self.open_again(run, found.take(), recipe.cloned()),
        });
        let received = broadcast_result(processes, as_text(lead.as_ref(), RunBroadcast::of));
        let lead = lead.transpose()?;
        let received = received?;
        let opened = match (lead, received.finished) {
            (Some(RankZeroRun::Run(opened)), _) => *opened,
            (Some(RankZeroRun::Finished(finished)), _) | (None, Some(finished)) => {
                return Ok(Outcome::AlreadyFinished(finished));
            }
            (None, None) => self.follow(&received.recipe, found, recipe, folder)?,
        };
        self.begin(opened)?.run()
    }
}

/// The run that rank 0 has claimed: a run that has begun, or a new one.
enum Claimed {
    Begun(Run),
    New(RankZeroRun),
}

/// Converts a part of rank 0's result for broadcasting: an error becomes text.
fn as_text<T, S>(
    result: Option<&Result<T, TrainError>>,
    of: impl Fn(&T) -> S,
) -> Option<Result<S, TrainError>> {
    result.map(|result| match result {
        Ok(value) => Ok(of(value)),
        Err(error) => Err(error.as_text()),
    })
}

impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer").field("request", &self.request).finish_non_exhaustive()
    }
}
