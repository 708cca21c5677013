//! From a recipe and a dataset to a calibrated model, through anything that happens in between.
//!
//! A run that is killed at any moment continues to the same bits: every file of its folder but the timing is in the
//! end what it would have been. What decides that is kept in checkpoints (`trainer/checkpoint_files.rs` lists it), and everything
//! else is a function of the recipe, the data and the step.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use calmix_train::recipe::Layers;
//! use calmix_run::sink::{Look, Progress};
//! use calmix_train::trainer::{Outcome, Trainer};
//!
//! let recipe = Layers::new().recipe("cpu-cifar10").set("dataset.path=cifar-10-batches-bin").resolve()?;
//! let run = Path::new("runs/first");
//! // A handler of Ctrl-C sets it: the run stops after the step and saves its state.
//! let stop = AtomicBool::new(false);
//! let terminal = Progress::new(std::io::stderr(), Look::Plain, recipe.recipe.train.steps);
//! let mut outcome = Trainer::new(&stop).tell(terminal).start(&recipe, run)?;
//! if let Outcome::Stopped { step } = outcome {
//!     println!("stopped after {step} steps");
//!     outcome = Trainer::new(&stop).resume(run, None)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint_files;
mod collect_results;
mod engine_settings;
mod error;
mod evaluate;
mod event_writer;
mod exchange;
mod find_checkpoint;
mod finish;
mod layout;
mod open_run;
mod partners;
mod reevaluate;
mod report;
mod save;
mod step_phase;
mod step_stats;
mod step_traffic;
mod sync;
mod train_data;
mod train_loop;
mod visits;
mod wire;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;
use std::time::Duration;

use calmix_core::labelled_samples::LabelledSamples;
use calmix_core::rng::Seed;
use calmix_core::samples::Samples;
use calmix_dist::{LaunchInfo, ProcessGroup};
use calmix_engine::device::{Device, set_threads};
use calmix_engine::engine::Engine;

pub use error::{StateProblem, TrainError};
pub use evaluate::EvalOutput;
pub use reevaluate::evaluate_run;
pub use step_phase::StepPhase;
pub use step_traffic::StepTraffic;

use crate::recipe::{Recipe, Resolved};
use calmix_run::checkpoint::{FoundCheckpoint, Identity};
use calmix_run::events::{Finished, Note};
use calmix_run::read;
use calmix_run::run::{Disk, Mark, Paths, RealDisk, Run};
use calmix_run::sink::Sink;
use checkpoint_files::RunProgress;
use collect_results::broadcast_result;
use engine_settings::settings;
use event_writer::EventWriter;
use find_checkpoint::find_checkpoint;
use layout::ParallelLayout;
use open_run::{Lead, OpenedRun, Orders};
use step_phase::Watch;
use sync::{RunFingerprint, StragglerDetector};
use train_loop::{TrainLoop, TrainState};

/// Begins runs and continues them.
pub struct Trainer<'a> {
    sinks: Vec<Box<dyn Sink + 'a>>,
    stop: &'a AtomicBool,
    disk: Arc<dyn Disk>,
    processes: ProcessGroup,
    local: Local,
    watch: Watch,
    /// What the processes compare of what was asked of them, where it is not the recipe itself.
    asked: Option<String>,
}

/// Where this process stands among those of its machine.
#[derive(Debug, Clone, Copy)]
struct Local {
    /// Which one it is: it takes the GPU of this number.
    rank: usize,
    /// How many there are; they share the cores.
    processes: usize,
}

impl Default for Local {
    /// The only one.
    fn default() -> Self {
        Self { rank: 0, processes: 1 }
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It came to its end.
    Finished(Finished),
    /// It had come to its end before; nothing was done.
    AlreadyFinished(Finished),
    /// It stopped on request, and can be resumed.
    Stopped {
        /// Steps that were done.
        step: u64,
    },
}

impl<'a> Trainer<'a> {
    /// A trainer without sinks. A run stops after the step in which `stop` becomes true, and saves its state.
    pub fn new(stop: &'a AtomicBool) -> Self {
        let processes = ProcessGroup::alone();
        Self {
            sinks: Vec::new(),
            stop,
            disk: Arc::new(RealDisk),
            processes,
            local: Local::default(),
            watch: Watch::default(),
            asked: None,
        }
    }

    /// Writes to a disk of the caller's.
    #[must_use]
    pub fn on_disk(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    /// Shares the run with the other processes that a launcher has started, which all do the same. The first of them
    /// writes and tells.
    ///
    /// # Errors
    /// If they do not come within the recipe's timeout.
    pub fn join(self, launch: &LaunchInfo, recipe: &Recipe) -> Result<Self, TrainError> {
        let train = &recipe.train;
        let device = train.device.or_else(|| Device::all().first().copied().unwrap_or(Device::Cpu));
        let device = if let Device::Cuda(_) = device { Device::Cuda(launch.local_rank) } else { device };
        let timeout = Duration::from_secs_f64(train.timeout);
        let processes = ProcessGroup::connect(launch, device.torch(), timeout)?;
        let local = Local { rank: launch.local_rank, processes: launch.local_world };
        Ok(Self { processes, local, ..self })
    }

    /// Says what was asked of this process, where that is less than its recipe: it must be the same with all processes.
    #[must_use]
    pub fn asked(self, hash: String) -> Self {
        Self { asked: Some(hash), ..self }
    }

    /// Calls `watch` before every phase of every step.
    #[must_use]
    pub fn watched(self, watch: impl Fn(StepPhase, u64) + Send + Sync + 'static) -> Self {
        Self { watch: Watch(Arc::new(watch)), ..self }
    }

    /// Tells one more what happens. The events in the run's folder are written in any case.
    #[must_use]
    pub fn tell(mut self, sink: impl Sink + 'a) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Begins a run in a folder that is empty or does not exist, or that a run was killed in before it began.
    ///
    /// # Errors
    /// If the recipe lacks something, the folder is in use, the dataset cannot be used, or anything fails on the way.
    pub fn start(self, recipe: &Resolved, folder: &Path) -> Result<Outcome, TrainError> {
        let claimed = self.leads().then(|| self.begin_new(recipe, folder));
        self.go(claimed, Some(recipe), folder)
    }

    /// Continues a run from its newest checkpoint, or from its beginning if it has none: with the recipe that it
    /// has, or with another one that differs only in what may change.
    ///
    /// # Errors
    /// If there is no run, it is in use, its checkpoints are damaged, the recipe or the dataset has changed, or
    /// anything fails on the way.
    pub fn resume(self, folder: &Path, recipe: Option<&Resolved>) -> Result<Outcome, TrainError> {
        let claimed = self.leads().then(|| self.lock(folder).map(Claimed::Begun));
        self.go(claimed, recipe, folder)
    }

    /// Begins a run, or continues it where it has begun: for launchers, which start the same command again.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`resume`](Self::resume).
    pub fn start_or_resume(self, recipe: &Resolved, folder: &Path) -> Result<Outcome, TrainError> {
        let claimed = self.leads().then(|| {
            if read::has_begun(folder) {
                self.lock(folder).map(Claimed::Begun)
            } else {
                self.begin_new(recipe, folder)
            }
        });
        self.go(claimed, Some(recipe), folder)
    }

    /// Makes the folder of a run that so many processes of this machine are going to resume from its beginning.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn create(self, recipe: Resolved, folder: &Path, processes: usize) -> Result<(), TrainError> {
        let local = Local { rank: 0, processes };
        Self { local, ..self }.open_new(recipe, folder, processes).map(drop)
    }

    fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    fn begin_new(&self, recipe: &Resolved, folder: &Path) -> Result<Claimed, TrainError> {
        self.open_new(recipe.clone(), folder, self.processes.size()).map(Claimed::New)
    }

    /// All processes: the first one opens the run that it has claimed, the others open the same, and all train.
    fn go(
        self,
        claimed: Option<Result<Claimed, TrainError>>,
        asked: Option<&Resolved>,
        folder: &Path,
    ) -> Result<Outcome, TrainError> {
        let processes = &self.processes;
        let resumes = said(claimed.as_ref(), |claimed| matches!(claimed, Claimed::Begun(_)));
        let resumes = broadcast_result(processes, resumes);
        let claimed = claimed.transpose()?;
        let mut found = None;
        if resumes? {
            found = find_checkpoint(processes, &Paths::new(folder).checkpoints())?;
        }
        let lead = claimed.map(|claimed| match claimed {
            Claimed::New(lead) => Ok(lead),
            Claimed::Begun(run) => self.open_again(run, found.take(), asked.cloned()),
        });
        let orders = broadcast_result(processes, said(lead.as_ref(), Orders::of));
        let lead = lead.transpose()?;
        let orders = orders?;
        let opened = match (lead, orders.finished) {
            (Some(Lead::Run(opened)), _) => *opened,
            (Some(Lead::Finished(finished)), _) | (None, Some(finished)) => {
                return Ok(Outcome::AlreadyFinished(finished));
            }
            (None, None) => self.follow(&orders.recipe, found, asked, folder)?,
        };
        self.begin(opened)?.run()
    }

    fn begin(self, opened: OpenedRun) -> Result<TrainLoop<'a>, TrainError> {
        let OpenedRun { recipe: resolved, data, found, run, mut notes } = opened;
        if run.is_some() {
            RunFingerprint::check(Ok(self.fingerprint(&resolved, &data)), &self.processes)?;
        }
        let recipe = &resolved.recipe;
        set_threads(recipe.train.threads as usize);
        let mut settings = settings(recipe, data.classes.len())?;
        if let (Device::Cuda(_), true) = (settings.device, self.processes.size() > 1) {
            settings.device = Device::Cuda(self.local.rank);
        }
        let layout = ParallelLayout::new(self.processes, recipe)?;
        let (method, classes) = (recipe.method, data.classes.len());
        let lengths = data.shard_lengths(recipe, &layout);
        let mut state = TrainState {
            engine: Engine::new(settings, Seed(recipe.train.seed))?,
            method: method.initial_state(classes, data.unlabelled()),
            labelled: LabelledSamples::new(&method, data.split.labelled()),
            samples: Samples::new(&method, classes, lengths),
            skips: 0,
        };
        let (mut step, mut mark, mut progress) = (0, Mark::start(), RunProgress::default());
        if let Some(FoundCheckpoint { checkpoint, skipped }) = &found {
            (step, mark) = (checkpoint.step(), checkpoint.manifest().journal.clone());
            progress = checkpoint_files::restore(checkpoint, &layout, &mut state)?;
            notes.extend(skipped.iter().map(|bad| Note {
                step,
                text: format!("the checkpoint of step {} cannot be used: {}", bad.step, bad.reason),
                hint: format!("the run goes on from step {step}"),
            }));
        }
        let identity = Identity {
            recipe: resolved.hash(),
            dataset: data.fingerprint.clone(),
            groups: recipe.train.groups,
            shards: recipe.train.shards,
        };
        let checkpoints = run.as_ref().map(|run| run.checkpoints(recipe.checkpoint.keep as usize));
        let mut events = match run {
            Some(run) => EventWriter::new(run, &mark, step, recipe, self.sinks)?,
            None => EventWriter::silent(recipe),
        };
        for note in notes {
            events.aside(note)?;
        }
        Ok(TrainLoop {
            partition: layout.partition(),
            saved: found.map(|found| found.checkpoint.step()),
            resolved,
            data,
            layout,
            method,
            state,
            progress,
            events,
            checkpoints,
            disk: self.disk,
            identity,
            step,
            stop: self.stop,
            stop_heard: false,
            busy: Duration::ZERO,
            stragglers: StragglerDetector::default(),
            watch: self.watch,
        })
    }
}

/// What the first process has claimed: the folder of a run that has begun, or a new run.
enum Claimed {
    Begun(Run),
    New(Lead),
}

/// What the first process tells the others of what it came to.
fn said<T, S>(own: Option<&Result<T, TrainError>>, of: impl Fn(&T) -> S) -> Option<Result<S, TrainError>> {
    own.map(|own| match own {
        Ok(value) => Ok(of(value)),
        Err(error) => Err(TrainError::Unsupported(error.to_string())),
    })
}

impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("sinks", &self.sinks.len())
            .field("stop", self.stop)
            .finish_non_exhaustive()
    }
}

/// The threads that a recipe comes to: 0 is one for each core, shared among the processes of a machine. Decided once a
/// run, for the last bits of a result depend on it.
pub fn threads(asked: u32, processes: usize) -> u32 {
    let all = || available_parallelism().map_or(1, NonZeroUsize::get);
    let each = || (all() / processes.max(1)).max(1);
    if asked == 0 { u32::try_from(each()).unwrap_or(1) } else { asked }
}
