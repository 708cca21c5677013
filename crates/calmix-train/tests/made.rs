//! A dataset, and recipes for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use calmix_lifecycle::request::RunRequest;
use calmix_recipe::{Layers, Resolved};
use calmix_run::events::{Event, Step};
use calmix_run::read;
use calmix_testkit::run_bytes::differing;
use calmix_testkit::sinks::StopAt;
use calmix_testkit::tiny_images::dataset;
use calmix_train::trainer::{Outcome, TrainError, Trainer};

/// A folder of its own for a test, with a dataset in it.
pub(crate) struct Bench {
    temp: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        dataset(&temp.path().join("data"));
        Self { temp }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.temp.path().join("data")
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// A run of twelve small steps; settings come last and win.
    pub(crate) fn recipe(&self, settings: &[&str]) -> Resolved {
        recipe(&self.data(), settings)
    }

    /// Starts a run, which may fail.
    pub(crate) fn start(&self, name: &str, settings: &[&str]) -> Result<Outcome, TrainError> {
        let stop = AtomicBool::new(false);
        Trainer::new(RunRequest::new(&stop)).start(&self.recipe(settings), &self.folder(name))
    }

    /// Trains to the end.
    pub(crate) fn train(&self, name: &str, settings: &[&str]) -> PathBuf {
        let outcome = self.start(name, settings).unwrap();
        assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
        self.folder(name)
    }

    /// Trains until some steps are done, and no further.
    pub(crate) fn train_until(&self, name: &str, steps: u64, settings: &[&str]) -> PathBuf {
        let (folder, outcome) = self.stop_at(name, steps, settings);
        assert_eq!(outcome, Outcome::Stopped { step: steps });
        folder
    }

    /// Trains until the event of a step requests a stop.
    pub(crate) fn stop_at(&self, name: &str, steps: u64, settings: &[&str]) -> (PathBuf, Outcome) {
        let folder = self.folder(name);
        let stop = AtomicBool::new(false);
        let trainer = Trainer::new(stopping(steps, &stop));
        let outcome = trainer.start(&self.recipe(settings), &folder).unwrap();
        (folder, outcome)
    }
}

pub(crate) fn recipe(data: &Path, settings: &[&str]) -> Resolved {
    layers(data, settings).resolve().unwrap()
}

pub(crate) fn layers(data: &Path, settings: &[&str]) -> Layers {
    let small = [
        "dataset.source=mnist",
        &format!("dataset.path={}", data.display()),
        "labels.count=3",
        "labels.validation=0.34",
        "network.name=wrn-10-1",
        "augment.size=8",
        "train.steps=12",
        "train.batch=6",
        "train.ratio=2",
        "train.threads=1",
        "train.device=cpu",
        "train.precision=f32",
        "ema.decay=0.5",
        "method.mixup.start.share=0.2",
        "loader.workers=1",
        "evaluate.every=5",
        "evaluate.bootstrap=20",
        "checkpoint.every=4",
        "log.every=1",
    ];
    small.iter().chain(settings).fold(Layers::new(), |layers, setting| layers.set(setting))
}

pub(crate) fn resume(folder: &Path) -> Result<Outcome, TrainError> {
    Trainer::new(RunRequest::new(&AtomicBool::new(false))).resume(folder, None)
}

/// A request for a run that stops after a number of steps.
pub(crate) fn stopping(steps: u64, stop: &AtomicBool) -> RunRequest<'_> {
    RunRequest::new(stop).sink(StopAt { steps, stop })
}

/// The logged steps of a run.
pub(crate) fn steps(folder: &Path) -> Vec<Step> {
    let events = read::events(folder).unwrap().into_iter();
    events.filter_map(|event| if let Event::Step(step) = event { Some(*step) } else { None }).collect()
}

/// The number of logged steps with mixtures.
pub(crate) fn mixed_steps(folder: &Path) -> usize {
    steps(folder).iter().filter(|step| step.mixes.is_some()).count()
}

/// Checks that two runs have the same bytes.
pub(crate) fn assert_same(expected: &Path, found: &Path, what: &str) {
    assert_eq!(differing(expected, found), Vec::<String>::new(), "{what}");
}

/// The checkpoint of a step.
pub(crate) fn checkpoint(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("checkpoints/step-{step:09}"))
}
