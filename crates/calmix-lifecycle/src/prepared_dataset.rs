//! The prepared dataset of a run: named by the user, shared with another run, or prepared now.

mod shared;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_data::dataset::Dataset;
use calmix_data::default_paths::default_prepared_folder;
use calmix_data::error::DataError;
use calmix_data::manifest::PREPARING;
use calmix_data::prepare::{Findings, Report, SourceStamp, prepare, prepare_interruptibly};
use calmix_data::source::{SourceSpec, has_labels};
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_io::safe_open;
use calmix_io::text::counted;
use calmix_recipe::{Data, Recipe, SourceName, detect_source, recipe_for};
use calmix_run::events::Note;
use calmix_run::run::Paths;

use crate::error::{LifecycleError, StartError};
use crate::start_context::{StartContext, StartNotice};

/// The maximum number of left-out files that the events of a run list.
const MAX_LISTED_FILES: usize = 20;

/// Opens the dataset, which must have at least two classes; prepares it into the run's folder first if necessary.
pub fn open_dataset(
    data: &Data,
    run: &Path,
    context: &mut StartContext<'_>,
) -> Result<Dataset, LifecycleError> {
    let root = Path::new(&data.path);
    let dataset = open_or_prepare(data, &data.source_spec(), run, context)?;
    if dataset.classes().is_empty() && data.source == SourceName::Vectors {
        let has_list = !data.labels.is_empty();
        let columns = if has_list { Vec::new() } else { label_columns(data, root) };
        return Err(StartError::NoLabels { path: root.to_owned(), columns, has_list }.into());
    }
    // With a single class, every prediction would be right.
    if let [class] = dataset.classes() {
        let path = root.to_owned();
        return Err(StartError::OneClass { path, class: class.clone(), source_name: data.source }.into());
    }
    Ok(dataset)
}

/// Opens the samples of a dataset whether they have labels or not; prepares them into `folder` first if necessary.
pub fn open_samples(
    data: &Data,
    folder: &Path,
    context: &mut StartContext<'_>,
) -> Result<Dataset, LifecycleError> {
    let spec = data.source_spec();
    let spec = if has_labels(&spec, Path::new(&data.path))? {
        spec
    } else {
        SourceSpec::Images { shrink: data.shrink }
    };
    open_or_prepare(data, &spec, folder, context)
}

/// Lists the columns of a vector file that may hold its labels; none if the file cannot be read.
fn label_columns(data: &Data, root: &Path) -> Vec<String> {
    let vector_column = Some(data.vector_column.clone()).filter(|name| !name.is_empty());
    let options = VectorOptions { vector_column, ..VectorOptions::default() };
    VectorSource::open(root, &options).map(|source| source.label_columns().to_vec()).unwrap_or_default()
}

fn open_or_prepare(
    data: &Data,
    spec: &SourceSpec,
    run: &Path,
    context: &mut StartContext<'_>,
) -> Result<Dataset, LifecycleError> {
    let root = Path::new(&data.path);
    if !data.prepared.is_empty() {
        let prepared = Path::new(&data.prepared);
        let dataset = Dataset::open(prepared, root)?;
        shared::check(prepared, &dataset, data, root)?;
        return Ok(dataset);
    }
    let target = Paths::new(run).prepared().to_path_buf();
    if target.exists() {
        // A process that was killed left this folder. `check_folder` follows no links, so its files cannot lead outside of it.
        safe_open::check_folder(&target)?;
        return Ok(Dataset::open(&target, root)?);
    }
    let places = [default_prepared_folder(root), siblings(run)];
    let StartContext { stop, warn, notify } = context;
    if let Some(found) = shared::share(spec, root, &places, &target) {
        notify(StartNotice::SharedPrepared { found: &found, linked: &target });
        return Ok(Dataset::open(&target, root)?);
    }
    notify(StartNotice::Reading { folder: root });
    let progress = |files, total| notify(StartNotice::Read { files, total });
    let report = prepare_interruptibly(spec, root, &target, stop, Arc::clone(warn), progress);
    notify(StartNotice::ReadingEnded);
    let report = report.map_err(|error| explain_format(root, data.source, error))?;
    let report = report.ok_or(LifecycleError::PreparationStopped)?;
    notify(StartNotice::Scanned { findings: &Findings::from(&report), prepared: &target });
    Ok(Dataset::open(&target, root)?)
}

fn siblings(run: &Path) -> PathBuf {
    let parent = run.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Adds the format that the files seem to have, if it is not that of the recipe.
fn explain_format(root: &Path, wanted: SourceName, problem: DataError) -> LifecycleError {
    if wanted == SourceName::Vectors {
        return problem.into();
    }
    let detected = detect_source(root, false);
    let recipe = recipe_for(detected);
    if recipe == recipe_for(wanted) {
        return problem.into();
    }
    StartError::OtherFormat { folder: root.to_owned(), problem: Box::new(problem), detected, recipe }.into()
}

/// Returns whether the files of a run's dataset, or the labels in them, have changed since it was prepared.
pub fn is_stale(recipe: &Recipe, paths: &Paths, dataset: &Dataset) -> Result<bool, LifecycleError> {
    let Some(stamp) = SourceStamp::read(&prepared_folder(recipe, paths))? else { return Ok(false) };
    let root = Path::new(&recipe.dataset.path);
    Ok(stamp.stale(dataset, &recipe.dataset.source_spec(), root)?.is_some())
}

/// Returns the folder of the prepared dataset, which need not exist yet.
pub fn prepared_folder(recipe: &Recipe, paths: &Paths) -> PathBuf {
    match recipe.dataset.prepared.as_str() {
        "" => paths.prepared().to_path_buf(),
        folder => PathBuf::from(folder),
    }
}

/// Prepares the dataset of a recipe in the run's folder, unless it is prepared already. Returns warnings for the user.
pub fn prepare_missing(recipe: &Recipe, paths: &Paths) -> Result<Vec<Note>, DataError> {
    sweep(paths.folder())?;
    let target = prepared_folder(recipe, paths);
    if !recipe.dataset.prepared.is_empty() || safe_open::exists(&target) {
        return Ok(Vec::new());
    }
    let report = prepare(&recipe.dataset.source_spec(), Path::new(&recipe.dataset.path), &target)?;
    Ok(notes(&report))
}

fn notes(report: &Report) -> Vec<Note> {
    let unreadable = report.unreadable.iter().take(MAX_LISTED_FILES).map(ToString::to_string);
    let more = report.left_out.saturating_sub(MAX_LISTED_FILES as u64);
    let more = (more > 0).then(|| format!("left out: {}", counted(more, "more file")));
    let found = unreadable.chain(more).chain(report.warnings.iter().map(ToString::to_string));
    let hint = "`calmix prepare` lists every problem of the dataset";
    found.map(|text| Note { step: 0, text, hint: hint.to_owned() }).collect()
}

/// Removes the scratch folders of killed preparations, even locked ones: this process has the lock of the run.
fn sweep(folder: &Path) -> Result<(), DataError> {
    let cannot = |error| DataError::new(folder, error);
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if entry.file_name().to_string_lossy().starts_with(PREPARING) {
            fs::remove_dir_all(entry.path()).map_err(|error| DataError::new(entry.path(), error))?;
        }
    }
    Ok(())
}
