//! From a recipe and a dataset to a calibrated model, through anything that happens in between.
//!
//! A run that is killed at any moment continues to the same bits: every file of its folder but the timing is in the
//! end what it would have been. What decides that is kept in checkpoints (`trainer/kept.rs` lists it), and everything
//! else is a function of the recipe, the data and the step.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use calmix_train::recipe::Layers;
//! use calmix_train::sink::{Look, Progress};
//! use calmix_train::trainer::{Outcome, Trainer};
//!
//! let recipe = Layers::new().recipe("desk-cifar10").set("dataset.path=cifar-10-batches-bin").resolve()?;
//! let run = Path::new("runs/first");
//! // Set by whoever handles Ctrl-C: the run is kept at the end of the step.
//! let stop = AtomicBool::new(false);
//! let terminal = Progress::new(std::io::stderr(), Look::Plain, recipe.recipe.train.steps);
//! let mut outcome = Trainer::new(&stop).tell(terminal).start(recipe, run)?;
//! if let Outcome::Stopped { step } = outcome {
//!     println!("stopped after {step} steps");
//!     outcome = Trainer::new(&stop).resume(run, None)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod again;
mod error;
mod judge;
mod kept;
mod learner;
mod material;
mod record;
mod samples;
mod session;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use calmix_data::error::DataError;
use calmix_engine::device::{Device, LIBTORCH, set_threads};
use calmix_engine::precision::Precision;
use serde::{Deserialize, Serialize};

pub use again::evaluate_run;
pub use error::{StateProblem, TrainError};
pub use judge::Verdict;

use crate::checkpoint::{Found, Identity, newest};
use crate::evaluate::{Scaling, Selection};
use crate::events::{Finished, Note};
use crate::inspect;
use crate::recipe::{Layers, Resolved, differences};
use crate::run::{Disk, Environment, Mark, RealDisk, Run, RunError, RunFile};
use crate::sink::Sink;
use kept::Progress;
use learner::{Learner, settings};
use material::Material;
use record::Record;
use session::Session;

/// Begins runs and continues them.
pub struct Trainer<'a> {
    sinks: Vec<Box<dyn Sink + 'a>>,
    stop: &'a AtomicBool,
    disk: Arc<dyn Disk>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It came to its end.
    Finished(Finished),
    /// It had come to its end before; nothing was done.
    AlreadyFinished(Finished),
    /// It was told to stop, and can be resumed.
    Stopped {
        /// Steps that were done.
        step: u64,
    },
}

/// The result of a run, as `result.json` has it beside the weights in `model.safetensors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// After how many steps the model was what it is.
    pub step: u64,
    /// The rule that chose it.
    pub selection: Selection,
    /// The names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// The temperature that its logits are divided by, where one could be fitted.
    pub scaling: Option<Scaling>,
    /// The figures by every rule.
    pub finished: Finished,
}

impl<'a> Trainer<'a> {
    /// One that tells nobody. A run stops at the end of the step in which `stop` becomes true, and is kept.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { sinks: Vec::new(), stop, disk: Arc::new(RealDisk) }
    }

    /// Writes to a disk of the caller's.
    #[must_use]
    pub fn on_disk(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
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
    pub fn start(self, mut recipe: Resolved, folder: &Path) -> Result<Outcome, TrainError> {
        recipe.ready()?;
        supported(&recipe)?;
        let train = &recipe.recipe.train;
        let device = train.device.or_else(|| Device::all().first().copied().unwrap_or(Device::Cpu));
        let precision = train.precision.or_else(|| Precision::best(device));
        let threads = threads(train.threads);
        recipe.decide(device, precision, threads)?;
        let run = match Run::create_on(folder, Arc::clone(&self.disk)) {
            Err(RunError::Exists { .. }) if !inspect::has_begun(folder) => {
                Run::open_on(folder, Arc::clone(&self.disk))?
            }
            run => run?,
        };
        let notes = prepare(&recipe, &run)?;
        let material = Material::open(&recipe.recipe, run.paths(), None)?;
        let environment = Environment::here(
            format!("libtorch {LIBTORCH}"),
            device.to_string(),
            material.fingerprint.clone(),
        );
        run.write(RunFile::Split, &json(&run, RunFile::Split, &material.split)?)?;
        run.write(RunFile::Environment, &json(&run, RunFile::Environment, &environment)?)?;
        // Last: a folder with a recipe is a run that can be resumed.
        run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
        self.begin(recipe, material, run, None, notes)?.run()
    }

    /// Continues a run from its newest checkpoint, or from its beginning if it has none: with the recipe that it
    /// has, or with another one that differs only in what may change.
    ///
    /// # Errors
    /// If there is no run, it is in use, its checkpoints are damaged, the recipe or the dataset has changed, or
    /// anything fails on the way.
    pub fn resume(self, folder: &Path, recipe: Option<Resolved>) -> Result<Outcome, TrainError> {
        let run = Run::open_on(folder, Arc::clone(&self.disk))?;
        if !inspect::has_begun(folder) {
            return Err(TrainError::Unborn { path: folder.to_owned() });
        }
        let found = newest(&run.paths().checkpoints())?;
        let path = run.paths().file(RunFile::Recipe)?;
        let written = inspect::recipe(folder)?;
        let before = match &found {
            Some(found) => {
                let text = found.checkpoint.bytes(kept::RECIPE)?;
                Layers::new().text(&path, &String::from_utf8_lossy(&text)).resolve()?
            }
            None => written.clone(),
        };
        let mut recipe = recipe.unwrap_or(written);
        let train = &recipe.recipe.train;
        let was = &before.recipe.train;
        let device = train.device.or_else(|| was.device.or_else(|| Device::Cpu));
        let precision = train.precision.or_else(|| was.precision.or_else(|| Precision::F32));
        let threads = if train.threads == 0 { was.threads } else { train.threads };
        recipe.decide(device, precision, threads)?;
        let changes: Vec<_> =
            differences(&before, &recipe).into_iter().filter(|change| !change.may_change).collect();
        if !changes.is_empty() {
            return Err(TrainError::Changed { path: folder.to_owned(), changes });
        }
        supported(&recipe)?;
        if let Some(finished) =
            found.as_ref().map(|found| kept::finished(&found.checkpoint)).transpose()?.flatten()
        {
            return Ok(Outcome::AlreadyFinished(finished));
        }
        let mut notes = prepare(&recipe, &run)?;
        notes.extend(other_bits(&before, &recipe));
        let fingerprint = match &found {
            Some(found) => found.checkpoint.manifest().identity.dataset.clone(),
            None => inspect::environment(folder)?.dataset,
        };
        let material = Material::open(&recipe.recipe, run.paths(), Some(&fingerprint))?;
        run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
        self.begin(recipe, material, run, found, notes)?.run()
    }

    fn begin(
        self,
        resolved: Resolved,
        material: Material,
        run: Run,
        found: Option<Found>,
        mut notes: Vec<Note>,
    ) -> Result<Session<'a>, TrainError> {
        let recipe = &resolved.recipe;
        set_threads(recipe.train.threads as usize);
        let mut learner = Learner::new(recipe, &material, settings(recipe, material.classes.len())?)?;
        let (mut step, mut mark, mut progress) = (0, Mark::start(), Progress::default());
        if let Some(Found { checkpoint, skipped }) = &found {
            (step, mark) = (checkpoint.step(), checkpoint.manifest().journal.clone());
            progress = kept::restore(checkpoint, &mut learner)?;
            notes.extend(skipped.iter().map(|bad| Note {
                step,
                text: format!("the checkpoint of step {} cannot be used: {}", bad.step, bad.reason),
                hint: format!("the run goes on from step {step}"),
            }));
        }
        let identity = Identity {
            recipe: resolved.hash(),
            dataset: material.fingerprint.clone(),
            groups: recipe.train.groups,
            shards: recipe.train.shards,
        };
        let checkpoints = run.checkpoints(recipe.checkpoint.keep as usize);
        let mut record = Record::new(run, &mark, step, recipe, self.sinks)?;
        for note in notes {
            record.aside(note)?;
        }
        let kept = found.map(|found| found.checkpoint.step());
        let stop = self.stop;
        Ok(Session { resolved, material, learner, progress, record, checkpoints, identity, step, kept, stop })
    }
}

impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("sinks", &self.sinks.len())
            .field("stop", self.stop)
            .finish_non_exhaustive()
    }
}

fn prepare(recipe: &Resolved, run: &Run) -> Result<Vec<Note>, TrainError> {
    let Some(report) = Material::prepare(&recipe.recipe, run.paths())? else { return Ok(Vec::new()) };
    let unreadable = report.unreadable.iter().map(ToString::to_string);
    let found = unreadable.chain(report.warnings.iter().map(ToString::to_string));
    let hint = "prepare the dataset on its own to see the whole report";
    Ok(found.map(|text| Note { step: 0, text, hint: hint.to_owned() }).collect())
}

/// What may change on resuming, but decides in which order numbers are added up.
fn other_bits(before: &Resolved, now: &Resolved) -> Option<Note> {
    let (was, is) = (&before.recipe.train, &now.recipe.train);
    let changed = (was.device, was.threads) != (is.device, is.threads);
    changed.then(|| Note {
        step: 0,
        text: "the device or the number of threads is another than before".to_owned(),
        hint: "the last bits of the result may differ from those of an uninterrupted run".to_owned(),
    })
}

/// What the format has room for and this version cannot do.
fn supported(recipe: &Resolved) -> Result<(), TrainError> {
    let train = &recipe.recipe.train;
    if train.groups == 1 && train.shards == 1 {
        return Ok(());
    }
    let sentence = "train.groups and train.shards must be 1: this version runs one batch in one process";
    Err(TrainError::Unsupported(sentence.to_owned()))
}

/// The threads that a recipe comes to: 0 is one for each core. Decided once a run, for the last bits of a result
/// depend on it.
pub fn threads(asked: u32) -> u32 {
    let all = || available_parallelism().map_or(1, NonZeroUsize::get);
    if asked == 0 { u32::try_from(all()).unwrap_or(1) } else { asked }
}

fn json(run: &Run, file: RunFile<'_>, what: &impl Serialize) -> Result<Vec<u8>, TrainError> {
    let path: PathBuf = run.paths().file(file)?;
    let mut bytes =
        serde_json::to_vec(what).map_err(|error| DataError::new(path, std::io::Error::from(error)))?;
    bytes.push(b'\n');
    Ok(bytes)
}
