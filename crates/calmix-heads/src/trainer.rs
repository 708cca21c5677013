//! The trainer of heads, top-down: folder, dataset, split, first files, vectors, heads. The vectors are the user's, or features
//! of images that a frozen backbone computes. There are no checkpoints: a run that was killed trains its heads again within
//! seconds, to the same bytes.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use calmix_heads::trainer;
//! use calmix_lifecycle::request::RunRequest;
//! use calmix_lifecycle::start::{Draft, RunPlace, StartContext, prepare_run};
//! use calmix_recipe::Layers;
//! use calmix_recipe::device::Device;
//!
//! let layers = Layers::new().recipe("head-folder").set("dataset.path=photos");
//! let draft = Draft::new(layers, || Device::Cpu)?;
//! trainer::check(&draft.resolved.recipe)?;
//! let stop = AtomicBool::new(false);
//! let prepared = prepare_run(&draft, &RunPlace::Next { name: None }, StartContext::quiet(&stop))?;
//! trainer::start(RunRequest::new(&stop), prepared)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_data::error::DataError;
use calmix_lifecycle::changes::RunInputs;
use calmix_lifecycle::changes::check_list_unchanged;
use calmix_lifecycle::changes::check_unchanged;
use calmix_lifecycle::prepared_dataset::prepare_missing;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::request::threads;
use calmix_lifecycle::run_files::write_first_files;
use calmix_lifecycle::run_images::RunImages;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_lifecycle::start::PreparedRun;
use calmix_recipe::Resolved;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Note;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::Outcome;
use calmix_run::run::{Mark, Run, RunEnvironment, RunFile};
use calmix_run::tensor_files::examples::Thumbnails;
use calmix_run::tensor_files::head_files::projection_bytes;

pub use crate::head_settings::check;
pub use crate::images::make_features::make_features;

use crate::error::HeadsError;
use crate::evaluate_head::HeadEvaluator;
use crate::head_settings::{check_head, check_head_of, decide_head, runtime};
use crate::images::backbone::Backbone;
use crate::images::make_features::{RunVectors, vectors_of_run};
use crate::label_copies::link_labels;
use crate::read_vectors::read_vectors;
use crate::run_head::HeadRun;
use crate::vector_table::TablePlace;

/// Starts a prepared run, or resumes it if it has begun.
pub fn start(request: RunRequest<'_>, prepared: PreparedRun) -> Result<Outcome, HeadsError> {
    let PreparedRun { mut resolved, dataset, split, mut folder, .. } = prepared;
    let Some(run) = folder.take_lock() else {
        check_list_unchanged(&resolved, &split, folder.path())?;
        return resume(request, folder.path(), Some(resolved));
    };
    resolved.ready()?;
    check_head(&resolved.recipe)?;
    let threads = threads(resolved.recipe.train.threads, 1);
    decide_head(&mut resolved, threads)?;
    let recipe = &resolved.recipe;
    let engine = runtime(recipe)?;
    if !recipe.has_vectors() {
        // Refuse a file that is not a backbone before the run begins.
        Backbone::read(recipe)?;
    }
    let notes = prepare_missing(recipe, run.paths())?;
    let samples = RunSamples::new(recipe, dataset, split)?;
    let environment = RunEnvironment::current(
        request.build.clone(),
        engine,
        recipe.train.device.to_string(),
        samples.fingerprint.clone(),
        samples.split_hash.clone(),
    );
    write_first_files(&run, &resolved, &samples, &environment)?;
    // `folder` must live until here: dropping it removes the folder of a run that has not begun.
    train(request, run, &resolved, &samples, notes)
}

/// Resumes a run from its beginning, with its own recipe or with one that differs only in keys that may change.
pub fn resume(
    request: RunRequest<'_>,
    folder: &Path,
    recipe: Option<Resolved>,
) -> Result<Outcome, HeadsError> {
    let run = request.open(folder)?;
    let before = inspect::recipe(folder)?;
    check_head_of(folder, &before.recipe)?;
    let mut recipe = match recipe {
        Some(recipe) => recipe,
        None => inspect::recipe_layers(folder)?.resolve()?,
    };
    check_head(&recipe.recipe)?;
    let requested = recipe.recipe.train.threads;
    let threads = if requested == 0 { before.recipe.train.threads } else { requested };
    decide_head(&mut recipe, threads)?;
    check_unchanged(&before, &recipe, folder)?;
    // There are no checkpoints, and the result is the last file written: a run with a result is finished.
    if let Some(result) = read::result(folder)? {
        return Ok(Outcome::AlreadyFinished(result.finished));
    }
    let mut notes = prepare_missing(&recipe.recipe, run.paths())?;
    notes.extend(device_note(&before, &recipe));
    let inputs = RunInputs::of(folder)?;
    let samples =
        request.open_when_available(|| RunSamples::open(&recipe.recipe, run.paths(), Some(&inputs)))?;
    run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
    train(request, run, &recipe, &samples, notes)
}

/// Trains the heads of a run from the beginning.
fn train(
    request: RunRequest<'_>,
    run: Run,
    resolved: &Resolved,
    samples: &RunSamples,
    notes: Vec<Note>,
) -> Result<Outcome, HeadsError> {
    match run_heads(request, run, resolved, samples, notes) {
        Err(HeadsError::Stopped) => Ok(Outcome::Stopped { step: 0 }),
        outcome => outcome,
    }
}

fn run_heads(
    mut request: RunRequest<'_>,
    run: Run,
    resolved: &Resolved,
    samples: &RunSamples,
    notes: Vec<Note>,
) -> Result<Outcome, HeadsError> {
    let recipe = &resolved.recipe;
    let stop = request.stop;
    let images = (!recipe.has_vectors()).then(|| RunImages::new(recipe, &samples.dataset, 1));
    let RunVectors { vectors, copies } = match &images {
        Some(images) => vectors_of_run(recipe, samples, images, &run, &mut request)?,
        None => vectors_of_user(resolved, samples, &run, stop)?,
    };
    let mut events = EventWriter::new(run, &Mark::start(), 0, recipe, request.sinks)?;
    events.started(0);
    for note in notes {
        events.notify_sinks_only(note)?;
    }
    let evaluator = HeadEvaluator { recipe, samples, vectors: &vectors, stop };
    let thumbnails = |ids: &[u64]| -> Result<Thumbnails, DataError> {
        let Some(images) = &images else { return Ok(Thumbnails::default()) };
        images.thumbnails(ids, recipe, &request.warn, stop)
    };
    let finished = HeadRun { evaluator, events, thumbnails: &thumbnails, copies }.run()?;
    Ok(Outcome::Finished(finished))
}

/// Reads the user's vectors, and stores their projection in the run.
fn vectors_of_user(
    resolved: &Resolved,
    samples: &RunSamples,
    run: &Run,
    stop: &AtomicBool,
) -> Result<RunVectors, HeadsError> {
    let recipe = &resolved.recipe;
    let paths = run.paths();
    let place = TablePlace::new(paths.folder());
    let vectors = read_vectors(recipe, &samples.dataset, &samples.needed(), paths, place, stop)?;
    run.write(RunFile::Projection, &projection_bytes(&vectors.projection)?)?;
    let copies = link_labels(recipe, samples, &vectors.projection, stop)?;
    Ok(RunVectors { vectors, copies })
}

/// Warns if the device has changed, which changes the last bits of features; another number of threads does not.
fn device_note(before: &Resolved, now: &Resolved) -> Option<Note> {
    let changed = before.recipe.train.device != now.recipe.train.device;
    changed.then(|| Note {
        step: 0,
        text: "the device has changed".to_owned(),
        hint: "the result may differ in its last bits from that of an uninterrupted run".to_owned(),
    })
}
