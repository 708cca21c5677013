//! A dataset, a backbone, and recipes of heads on both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::prepare::prepare;
use calmix_heads::HeadsError;
use calmix_heads::trainer;
use calmix_io::disk::RealDisk;
use calmix_lifecycle::prepared_dataset::open_dataset;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::splits::draw_split;
use calmix_lifecycle::start::{PreparedRun, RunFolder, RunPlace, StartContext};
use calmix_recipe::{Layers, Resolved};
use calmix_run::result::Outcome;
use calmix_testkit::network_weights::{spec, weights};
use calmix_testkit::sinks::StopAt;
use calmix_testkit::tiny_images::dataset;

/// A folder of its own for a test, with a dataset and a backbone in it.
pub(crate) struct Bench {
    temp: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        dataset(&temp.path().join("data"));
        let bench = Self { temp };
        bench.write_backbone("backbone.safetensors", 10);
        bench
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder("data")
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Writes a backbone; with another number of classes, its statistics are others.
    pub(crate) fn write_backbone(&self, name: &str, classes: usize) -> PathBuf {
        let file = self.folder(name);
        fs::write(&file, weights(&spec("wrn-10-1", 8), classes)).unwrap();
        file
    }

    /// Prepares the dataset, as several processes need it.
    pub(crate) fn prepared_table(&self) -> String {
        let table = self.folder("prepared");
        prepare(&self.recipe(&[]).recipe.dataset.source_spec(), &self.data(), &table).unwrap();
        format!("dataset.prepared={}", table.display())
    }

    /// A head of twelve small steps; settings come last and win.
    pub(crate) fn layers(&self, settings: &[&str]) -> Layers {
        let data = format!("dataset.path={}", self.data().display());
        let weights = format!("network.weights={}", self.folder("backbone.safetensors").display());
        let small = [
            "dataset.source=mnist",
            &data,
            "labels.count=4",
            "labels.validation=0",
            "network.name=wrn-10-1",
            "network.train=head",
            &weights,
            "network.dimensions=16",
            "augment.size=8",
            "optimiser.lr=1.0",
            "train.steps=12",
            "train.batch=6",
            "train.ratio=2",
            "train.threads=1",
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

    pub(crate) fn recipe(&self, settings: &[&str]) -> Resolved {
        self.layers(settings).resolve().unwrap()
    }

    /// Starts a run in a new folder.
    pub(crate) fn start(
        &self,
        request: RunRequest<'_>,
        name: &str,
        settings: &[&str],
    ) -> Result<Outcome, HeadsError> {
        trainer::start(request, prepared(self.recipe(settings), &self.folder(name))?)
    }

    /// Trains to the end.
    pub(crate) fn train(&self, name: &str, settings: &[&str]) -> PathBuf {
        let stop = AtomicBool::new(false);
        let outcome = self.start(RunRequest::new(&stop), name, settings).unwrap();
        assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
        self.folder(name)
    }

    /// Trains until the event of a step requests a stop.
    pub(crate) fn stop_at(&self, name: &str, steps: u64, settings: &[&str]) -> (PathBuf, Outcome) {
        let stop = AtomicBool::new(false);
        let request = RunRequest::new(&stop).sink(StopAt { steps, stop: &stop });
        let outcome = self.start(request, name, settings).unwrap();
        (self.folder(name), outcome)
    }
}

/// A run that is ready to start, with the recipe as it is.
pub(crate) fn prepared(resolved: Resolved, folder: &Path) -> Result<PreparedRun, HeadsError> {
    let place = RunPlace::New(folder.to_owned());
    let folder = RunFolder::claim(&place, PathBuf::new, "run", Arc::new(RealDisk))?;
    let stop = AtomicBool::new(false);
    let dataset = open_dataset(&resolved.recipe.dataset, folder.path(), &mut StartContext::quiet(&stop))?;
    let split = draw_split(&resolved.recipe, &dataset)?;
    Ok(PreparedRun { resolved, dataset, split, backbone: None, folder })
}

pub(crate) fn resume(folder: &Path) -> Result<Outcome, HeadsError> {
    trainer::resume(RunRequest::new(&AtomicBool::new(false)), folder, None)
}
