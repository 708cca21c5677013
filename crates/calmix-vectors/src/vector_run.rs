//! A run on vectors that the user already has, top-down: its folder, its table, its split, its first files, its vectors, its
//! heads. It trains without libtorch, in seconds, and without checkpoints: a run that was killed trains its heads again, to the
//! same bytes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::default_place::folder_for_output;
use calmix_data::error::{DataError, DataProblem};
use calmix_data::loader::Warn;
use calmix_data::split::LabelSplit;
use calmix_head::samples::check_classes;
use calmix_io::disk::WarningDisk;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_recipe::{Data, Layers, Resolved, differences};
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Note;
use calmix_run::examples::Thumbnails;
use calmix_run::head_files::projection_bytes;
use calmix_run::inspect;
use calmix_run::outcome::Outcome;
use calmix_run::read;
use calmix_run::run::{Build, Mark, Run, RunEnvironment, RunFile};
use calmix_run::run_folder::{RunFolder, RunPlace};
use calmix_run::sink::Sink;
use toml::Value;

use crate::error::VectorsError;
use crate::evaluate_head::HeadEvaluator;
use crate::first_files::write_first_files;
use crate::label_copies::link_labels;
use crate::prepared_table::prepare_missing;
use crate::read_vectors::{VectorShape, read_vectors};
use crate::run_head::HeadRun;
use crate::run_samples::{BeganWith, RunSamples};
use crate::splits::draw_split;
use crate::start_notice::StartNotice;
use crate::table::open_table;
use crate::table_splits::take_splits;
use crate::threads::threads;
use crate::vector_table::TablePlace;

/// The origin of settings that the contents of the vectors' file decide.
pub(crate) const FILE_CONTENTS: &str = "contents of the vectors' file";
/// What `environment.json` has in place of the version of libtorch.
const ENGINE: &str = "no libtorch";

/// A run on vectors that is ready to start.
#[derive(Debug)]
pub struct PreparedVectors {
    /// The recipe, with everything that the dataset decides.
    pub resolved: Resolved,
    /// The dataset.
    pub dataset: Dataset,
    /// Which labels are trained on.
    pub split: LabelSplit,
    /// The folder of the run. Dropped before the run starts, it is removed again.
    pub folder: RunFolder,
}

/// Claims the folder of a run on vectors, opens or makes the table of its dataset, and completes its recipe. `stop` ends a
/// preparation, `warn` receives warnings at once, and `notify` its events.
///
/// # Errors
/// If the recipe lacks something, the folder is in use, or the vectors or their labels cannot be used.
pub fn prepare_vectors(
    layers: &Layers,
    place: &RunPlace,
    stop: &AtomicBool,
    warn: &Warn,
    notify: &mut dyn FnMut(StartNotice<'_>),
) -> Result<PreparedVectors, VectorsError> {
    let resolved = layers.clone().resolve()?;
    resolved.ready()?;
    let mut recipe = resolved.recipe.clone();
    let beside = || folder_for_output(Path::new(&resolved.recipe.dataset.path));
    let disk = Arc::new(WarningDisk(Arc::clone(warn)));
    let folder = RunFolder::claim(place, beside, layers.base().unwrap_or("run"), disk)?;
    let dataset = open_table(&resolved.recipe.dataset, folder.path(), stop, warn, notify)?;
    let mut decided = take_splits(&resolved, &mut recipe, &dataset, notify);
    decided.extend(view_settings(VectorShape::of(&dataset)?.views));
    let split = draw_split(&recipe, &dataset)?;
    check_classes(split.labelled().len(), dataset.classes().len()).map_err(|error| {
        let Data { path, labels, .. } = &resolved.recipe.dataset;
        let place = if labels.is_empty() { path } else { labels };
        let problem = DataProblem::Content(error.to_string());
        DataError::new(place, problem).hint("name the column of the classes with --label-column")
    })?;
    let resolved = layers.clone().decided(FILE_CONTENTS, decided).resolve()?;
    Ok(PreparedVectors { resolved, dataset, split, folder })
}

/// The views after the first: half of them weak, the others strong. A single view serves for both.
pub(crate) fn view_settings(views: usize) -> [(&'static str, Value); 2] {
    let more = views.saturating_sub(1);
    let weak = more / 2;
    let number = |views: usize| Value::Integer(i64::try_from(views).unwrap_or(i64::MAX));
    [("network.weak_views", number(weak)), ("network.strong_views", number(more - weak))]
}

/// Starts and resumes runs on vectors.
pub struct VectorTrainer<'a> {
    stop: &'a AtomicBool,
    warn: Warn,
    sinks: Vec<Box<dyn Sink + 'a>>,
    build: Build,
    takes_over: bool,
}

impl<'a> VectorTrainer<'a> {
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
    /// If the samples cannot be used, or anything fails on the way.
    pub fn start(self, prepared: PreparedVectors) -> Result<Outcome, VectorsError> {
        let PreparedVectors { mut resolved, dataset, split, mut folder } = prepared;
        let Some(run) = folder.take_lock() else {
            return self.resume(folder.path(), Some(resolved));
        };
        let threads = threads(resolved.recipe.train.threads, 1);
        resolved.decide(Device::Cpu, Precision::F32, threads, 1)?;
        let samples = RunSamples::new(&resolved.recipe, dataset, split)?;
        let environment = RunEnvironment::here(
            self.build.clone(),
            ENGINE,
            Device::Cpu.to_string(),
            samples.fingerprint.clone(),
            samples.split_hash.clone(),
        );
        write_first_files(&run, &resolved, &samples, &environment)?;
        // `folder` lives until here, and is removed if the run has not begun.
        self.train(run, &resolved, &samples, Vec::new())
    }

    /// Resumes a run from its beginning: with the recipe that it has, or with another one that differs only in what may
    /// change.
    ///
    /// # Errors
    /// If there is no run, it is in use, or the recipe or the dataset has changed.
    pub fn resume(self, folder: &Path, recipe: Option<Resolved>) -> Result<Outcome, VectorsError> {
        let disk = Arc::new(WarningDisk(Arc::clone(&self.warn)));
        let run = if self.takes_over { Run::take_over(folder, disk)? } else { Run::open_on(folder, disk)? };
        if !read::has_begun(folder) {
            return Err(VectorsError::NotBegun { path: folder.to_owned() });
        }
        let before = inspect::recipe(folder)?;
        let mut recipe = match recipe {
            Some(recipe) => recipe,
            None => inspect::recipe_layers(folder)?.resolve()?,
        };
        let asked = recipe.recipe.train.threads;
        let threads = if asked == 0 { before.recipe.train.threads } else { asked };
        recipe.decide(Device::Cpu, Precision::F32, threads, 1)?;
        let changes: Vec<_> =
            differences(&before, &recipe).into_iter().filter(|change| !change.may_change).collect();
        if !changes.is_empty() {
            return Err(VectorsError::Changed { path: folder.to_owned(), changes });
        }
        // It has no checkpoints, and its result is the last file that it writes.
        if let Some(result) = read::result(folder)? {
            return Ok(Outcome::AlreadyFinished(result.finished));
        }
        let notes = prepare_missing(&recipe.recipe, run.paths())?;
        let RunEnvironment { dataset, split, .. } = read::environment(folder)?;
        let samples = RunSamples::open(&recipe.recipe, run.paths(), Some(&BeganWith { dataset, split }))?;
        run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
        self.train(run, &recipe, &samples, notes)
    }

    /// Reads the vectors and trains the heads of a run from the beginning.
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
        self,
        run: Run,
        resolved: &Resolved,
        samples: &RunSamples,
        notes: Vec<Note>,
    ) -> Result<Outcome, VectorsError> {
        let recipe = &resolved.recipe;
        let stop = self.stop;
        let paths = run.paths();
        let place = TablePlace::new(paths.folder());
        let vectors = read_vectors(recipe, &samples.dataset, &samples.needed(), paths, place, stop)?;
        run.write(RunFile::Projection, &projection_bytes(&vectors.projection)?)?;
        let copies = link_labels(recipe, samples, &vectors.projection, stop)?;
        let mut events = EventWriter::new(run, &Mark::start(), 0, recipe, self.sinks)?;
        events.begins(0);
        for note in notes {
            events.aside(note)?;
        }
        let evaluator = HeadEvaluator { recipe, samples, vectors: &vectors, stop };
        let finished =
            HeadRun { evaluator, events, thumbnails: &|_| Ok(Thumbnails::default()), copies }.run()?;
        Ok(Outcome::Finished(finished))
    }
}

impl std::fmt::Debug for VectorTrainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VectorTrainer").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}
