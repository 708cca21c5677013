//! The prepared table of a run that is about to start: named by the user, shared with another run, or newly prepared.

pub mod prepared_table;
mod shared_table;
pub(crate) mod table_error;
pub mod table_splits;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::default_place::default_table;
use calmix_data::error::DataError;
use calmix_data::loader::Warn;
use calmix_data::prepare::{Findings, prepare_table};
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_io::safe_open;
use calmix_recipe::{Data, SourceName, detect_source, recipe_for};
use calmix_run::run::Paths;

use crate::error::LifecycleError;
use crate::start_notice::StartNotice;
use crate::table::table_error::TableError;

/// Opens the dataset, of at least two classes; prepares it into the run's folder unless it is prepared. `stop` ends a
/// preparation, `warn` receives warnings at once, and `notify` its events.
///
/// # Errors
/// If the files cannot be used, or are not in the format of the recipe.
pub fn open_table(
    data: &Data,
    run: &Path,
    stop: &AtomicBool,
    warn: &Warn,
    notify: &mut dyn FnMut(StartNotice<'_>),
) -> Result<Dataset, LifecycleError> {
    let root = Path::new(&data.path);
    let dataset = open_or_make(data, root, run, stop, warn, notify)?;
    if dataset.classes().is_empty() && data.source == SourceName::Vectors {
        let has_list = !data.labels.is_empty();
        let columns = if has_list { Vec::new() } else { label_columns(data, root) };
        return Err(TableError::NoLabels { path: root.to_owned(), columns, has_list }.into());
    }
    // With one class, every prediction is right.
    if let [class] = dataset.classes() {
        let path = root.to_owned();
        return Err(TableError::OneClass { path, class: class.clone(), source_name: data.source }.into());
    }
    Ok(dataset)
}

/// The columns of a file of vectors that may hold its labels; none if the file cannot be read.
fn label_columns(data: &Data, root: &Path) -> Vec<String> {
    let vector_column = Some(data.vector_column.clone()).filter(|name| !name.is_empty());
    let options = VectorOptions { vector_column, ..VectorOptions::default() };
    VectorSource::open(root, &options).map(|source| source.label_columns().to_vec()).unwrap_or_default()
}

fn open_or_make(
    data: &Data,
    root: &Path,
    run: &Path,
    stop: &AtomicBool,
    warn: &Warn,
    notify: &mut dyn FnMut(StartNotice<'_>),
) -> Result<Dataset, LifecycleError> {
    if !data.prepared.is_empty() {
        let table = Path::new(&data.prepared);
        let dataset = Dataset::open(table, root)?;
        shared_table::check(table, &dataset, data, root)?;
        return Ok(dataset);
    }
    let target = Paths::new(run).prepared().to_path_buf();
    if target.exists() {
        // Left by a process that was killed. Its files cannot lead outside of the folder: opening them follows no links.
        safe_open::check_folder(&target)?;
        return Ok(Dataset::open(&target, root)?);
    }
    let places = [default_table(root), siblings(run)];
    if let Some(table) = shared_table::share(&data.source_spec(), root, &places, &target) {
        notify(StartNotice::SharedTable { table: &table, own: &target });
        return Ok(Dataset::open(&target, root)?);
    }
    notify(StartNotice::Reading { folder: root });
    let progress = |files, total| notify(StartNotice::Read { files, total });
    let report = prepare_table(&data.source_spec(), root, &target, stop, Arc::clone(warn), progress);
    notify(StartNotice::ReadingEnded);
    let report = report.map_err(|error| explain_format(root, data.source, error))?;
    let report = report.ok_or(LifecycleError::PreparationStopped)?;
    notify(StartNotice::Scanned { findings: &Findings::from(&report), table: &target });
    Ok(Dataset::open(&target, root)?)
}

/// The folder that contains a run.
fn siblings(run: &Path) -> PathBuf {
    let parent = run.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Adds what the files look like, if they do not have the format of the recipe.
fn explain_format(root: &Path, wanted: SourceName, problem: DataError) -> LifecycleError {
    if wanted == SourceName::Vectors {
        return problem.into();
    }
    let detected = detect_source(root, false);
    let recipe = recipe_for(detected);
    if recipe == recipe_for(wanted) {
        return problem.into();
    }
    TableError::OtherFormat { folder: root.to_owned(), problem: Box::new(problem), detected, recipe }.into()
}
