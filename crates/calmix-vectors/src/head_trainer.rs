//! A run of a head, top-down: its folder, its table, its split, its first files, its vectors, its heads. The vectors are the
//! user's, or features of images that a frozen backbone computes. It trains without libtorch and without checkpoints: a run
//! that was killed trains its heads again, within seconds, to the same bytes.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use calmix_recipe::Layers;
//! use calmix_recipe::device::Device;
//! use calmix_vectors::head_trainer::HeadTrainer;
//! use calmix_vectors::start::{Draft, RunPlace, StartContext, prepare_run};
//!
//! let layers = Layers::new().recipe("head-folder").set("dataset.path=photos");
//! let draft = Draft::new(layers, || Device::Cpu)?;
//! let stop = AtomicBool::new(false);
//! let prepared = prepare_run(&draft, &RunPlace::Next { name: None }, StartContext::quiet(&stop))?;
//! HeadTrainer::new(&stop).start(prepared)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::error::DataError;
use calmix_data::loader::Warn;
use calmix_io::disk::WarningDisk;
use calmix_recipe::{Resolved, differences};
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Note;
use calmix_run::outcome::Outcome;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::run::{Build, Mark, Run, RunEnvironment, RunFile};
use calmix_run::sink::Sink;
use calmix_run::tensor_files::examples::Thumbnails;
use calmix_run::tensor_files::head_files::projection_bytes;

use crate::error::VectorsError;
use crate::evaluate_head::HeadEvaluator;
use crate::first_files::write_first_files;
use crate::head_runtime::{check_head, check_head_of, decide_head, runtime};
use crate::images::backbone::Backbone;
use crate::images::feature_work::PageShard;
use crate::images::make_features::{FeatureWatch, RunVectors, make_features, vectors_of_run};
use crate::images::run_images::RunImages;
use crate::label_copies::link_labels;
use crate::prepared_table::prepare_missing;
use crate::read_vectors::read_vectors;
use crate::run_head::HeadRun;
use crate::run_samples::{BeganWith, RunSamples};
use crate::splits::same_list;
use crate::start::PreparedRun;
use crate::storage_wait::open_when_available;
use crate::threads::threads;
use crate::vector_table::TablePlace;

/// Starts and resumes runs of heads.
pub struct HeadTrainer<'a> {
    stop: &'a AtomicBool,
    warn: Warn,
    sinks: Vec<Box<dyn Sink + 'a>>,
    build: Build,
    takes_over: bool,
}

impl<'a> HeadTrainer<'a> {
    /// A trainer without sinks. A run stops as soon as `stop` becomes true.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, warn: Arc::new(|_| {}), sinks: Vec::new(), build: Build::default(), takes_over: false }
    }

    /// Receives urgent warnings: that the storage does not answer, and that it is back. Called from any thread.
    #[must_use]
    pub fn warning(self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { warn: Arc::new(warn), ..self }
    }

    /// Adds a sink. An error of it does not end the run: the terminal behind it may close.
    #[must_use]
    pub fn sink(mut self, sink: impl Sink + 'a) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Names what the program was compiled from; a new run records it.
    #[must_use]
    pub fn built_from(self, build: Build) -> Self {
        Self { build, ..self }
    }

    /// Also opens a run that a process of another machine has not closed: the caller knows that it has ended.
    #[must_use]
    pub fn taking_over(self, takes_over: bool) -> Self {
        Self { takes_over, ..self }
    }

    /// Starts a run that was prepared, or resumes it if it has begun.
    ///
    /// # Errors
    /// If the recipe is not one of a head, the samples or the backbone cannot be used, ONNX Runtime is missing, or anything
    /// fails on the way.
    pub fn start(self, prepared: PreparedRun) -> Result<Outcome, VectorsError> {
        let PreparedRun { mut resolved, dataset, split, mut folder, .. } = prepared;
        let Some(run) = folder.take_lock() else {
            same_list(&resolved, &split, folder.path())?;
            return self.resume(folder.path(), Some(resolved));
        };
        resolved.ready()?;
        check_head(&resolved.recipe)?;
        let threads = threads(resolved.recipe.train.threads, 1);
        decide_head(&mut resolved, threads)?;
        let recipe = &resolved.recipe;
        let engine = runtime(recipe)?;
        if !recipe.has_vectors() {
            // A file that is not the backbone is refused before the run begins.
            Backbone::read(recipe)?;
        }
        let notes = prepare_missing(recipe, run.paths())?;
        let samples = RunSamples::new(recipe, dataset, split)?;
        let environment = RunEnvironment::here(
            self.build.clone(),
            engine,
            recipe.train.device.to_string(),
            samples.fingerprint.clone(),
            samples.split_hash.clone(),
        );
        write_first_files(&run, &resolved, &samples, &environment)?;
        // `folder` lives until here, and is removed if the run has not begun.
        self.train(run, &resolved, &samples, notes)
    }

    /// Resumes a run from its beginning: with the recipe that it has, or with another one that differs only in what may
    /// change.
    ///
    /// # Errors
    /// If there is no run of a head, it is in use, or the recipe or the dataset has changed.
    pub fn resume(self, folder: &Path, recipe: Option<Resolved>) -> Result<Outcome, VectorsError> {
        let disk = Arc::new(WarningDisk(Arc::clone(&self.warn)));
        let run = if self.takes_over { Run::take_over(folder, disk)? } else { Run::open_on(folder, disk)? };
        if !read::has_begun(folder) {
            return Err(VectorsError::NotBegun { path: folder.to_owned() });
        }
        let before = inspect::recipe(folder)?;
        check_head_of(folder, &before.recipe)?;
        let mut recipe = match recipe {
            Some(recipe) => recipe,
            None => inspect::recipe_layers(folder)?.resolve()?,
        };
        check_head(&recipe.recipe)?;
        let asked = recipe.recipe.train.threads;
        let threads = if asked == 0 { before.recipe.train.threads } else { asked };
        decide_head(&mut recipe, threads)?;
        let changes: Vec<_> =
            differences(&before, &recipe).into_iter().filter(|change| !change.may_change).collect();
        if !changes.is_empty() {
            return Err(VectorsError::Changed { path: folder.to_owned(), changes });
        }
        // It has no checkpoints, and its result is the last file that it writes.
        if let Some(result) = read::result(folder)? {
            return Ok(Outcome::AlreadyFinished(result.finished));
        }
        let mut notes = prepare_missing(&recipe.recipe, run.paths())?;
        notes.extend(other_bits(&before, &recipe));
        let RunEnvironment { dataset, split, .. } = read::environment(folder)?;
        let began_with = BeganWith { dataset, split };
        let samples = open_when_available(self.stop, &self.warn, || {
            RunSamples::open(&recipe.recipe, run.paths(), Some(&began_with))
        })?;
        run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
        self.train(run, &recipe, &samples, notes)
    }

    /// Computes the features of the frozen backbone that a run with this recipe needs, or this process's part of them. The
    /// dataset has to be prepared.
    ///
    /// # Errors
    /// If the recipe has no head, or its dataset or its backbone cannot be used; [`VectorsError::Stopped`] if it has to stop,
    /// and the cache keeps what was computed.
    pub fn make_features(mut self, recipe: &Resolved, part: PageShard) -> Result<(), VectorsError> {
        let watch = FeatureWatch { stop: self.stop, warn: &self.warn, sinks: &mut self.sinks };
        make_features(recipe.clone(), part, watch)
    }

    /// Trains the heads of a run from the beginning.
    fn train(
        self,
        run: Run,
        resolved: &Resolved,
        samples: &RunSamples,
        notes: Vec<Note>,
    ) -> Result<Outcome, VectorsError> {
        match self.run_heads(run, resolved, samples, notes) {
            Err(VectorsError::Stopped) => Ok(Outcome::Stopped { step: 0 }),
            outcome => outcome,
        }
    }

    fn run_heads(
        mut self,
        run: Run,
        resolved: &Resolved,
        samples: &RunSamples,
        notes: Vec<Note>,
    ) -> Result<Outcome, VectorsError> {
        let recipe = &resolved.recipe;
        let stop = self.stop;
        let images = (!recipe.has_vectors()).then(|| RunImages::new(recipe, &samples.dataset, 1));
        let RunVectors { vectors, copies } = match &images {
            Some(images) => {
                let watch = FeatureWatch { stop, warn: &self.warn, sinks: &mut self.sinks };
                vectors_of_run(recipe, samples, images, &run, watch)?
            }
            None => vectors_of_user(resolved, samples, &run, stop)?,
        };
        let mut events = EventWriter::new(run, &Mark::start(), 0, recipe, self.sinks)?;
        events.begins(0);
        for note in notes {
            events.aside(note)?;
        }
        let evaluator = HeadEvaluator { recipe, samples, vectors: &vectors, stop };
        let thumbnails = |ids: &[u64]| -> Result<Thumbnails, DataError> {
            let Some(images) = &images else { return Ok(Thumbnails::default()) };
            images.thumbnails(ids, recipe, &self.warn, stop)
        };
        let finished = HeadRun { evaluator, events, thumbnails: &thumbnails, copies }.run()?;
        Ok(Outcome::Finished(finished))
    }
}

/// Reads the vectors of the user, and keeps their projection in the run.
fn vectors_of_user(
    resolved: &Resolved,
    samples: &RunSamples,
    run: &Run,
    stop: &AtomicBool,
) -> Result<RunVectors, VectorsError> {
    let recipe = &resolved.recipe;
    let paths = run.paths();
    let place = TablePlace::new(paths.folder());
    let vectors = read_vectors(recipe, &samples.dataset, &samples.needed(), paths, place, stop)?;
    run.write(RunFile::Projection, &projection_bytes(&vectors.projection)?)?;
    let copies = link_labels(recipe, samples, &vectors.projection, stop)?;
    Ok(RunVectors { vectors, copies })
}

/// Warns if the device has changed, which computes other last bits of features. The number of threads does not.
fn other_bits(before: &Resolved, now: &Resolved) -> Option<Note> {
    let changed = before.recipe.train.device != now.recipe.train.device;
    changed.then(|| Note {
        step: 0,
        text: "the device has changed".to_owned(),
        hint: "the result may differ in its last bits from that of an uninterrupted run".to_owned(),
    })
}

impl std::fmt::Debug for HeadTrainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeadTrainer").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}
