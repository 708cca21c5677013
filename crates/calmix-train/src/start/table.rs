//! The prepared table of a run that is about to start: named by the user, shared with another run, or newly prepared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_data::dataset::Dataset;
use calmix_data::default_place::default_table;
use calmix_data::error::DataError;
use calmix_data::prepare::{Findings, prepare_table};
use calmix_io::safe_open;
use calmix_recipe::{Data, SourceName, detect_source, recipe_for};
use calmix_run::run::Paths;

use super::error::StartError;
use super::shared_table;
use super::{StartContext, StartNotice};
use crate::trainer::TrainError;

/// Opens the dataset, of at least two classes; prepares it into the run's folder unless it is prepared.
pub(super) fn open(data: &Data, run: &Path, context: &mut StartContext<'_>) -> Result<Dataset, TrainError> {
    let root = Path::new(&data.path);
    let dataset = open_or_make(data, root, run, context)?;
    // With one class, every prediction is right.
    if let [class] = dataset.classes() {
        return Err(StartError::OneClass { folder: root.to_owned(), class: class.clone() }.into());
    }
    Ok(dataset)
}

fn open_or_make(
    data: &Data,
    root: &Path,
    run: &Path,
    context: &mut StartContext<'_>,
) -> Result<Dataset, TrainError> {
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
        (context.notify)(StartNotice::SharedTable { table: &table, own: &target });
        return Ok(Dataset::open(&target, root)?);
    }
    (context.notify)(StartNotice::Reading { folder: root });
    let notify = &mut context.notify;
    let progress = |files, total| notify(StartNotice::Read { files, total });
    let warn = Arc::clone(&context.warn);
    let report = prepare_table(&data.source_spec(), root, &target, context.stop, warn, progress);
    (context.notify)(StartNotice::ReadingEnded);
    let report = report.map_err(|error| explain_format(root, data.source, error))?;
    let report = report.ok_or(TrainError::PreparationStopped)?;
    (context.notify)(StartNotice::Scanned { findings: &Findings::from(&report), table: &target });
    Ok(Dataset::open(&target, root)?)
}

/// The folder that contains a run.
fn siblings(run: &Path) -> PathBuf {
    let parent = run.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Adds what the files look like, if they do not have the format of the recipe.
fn explain_format(root: &Path, wanted: SourceName, problem: DataError) -> TrainError {
    let detected = detect_source(root, false);
    let recipe = recipe_for(detected);
    if recipe == recipe_for(wanted) {
        return problem.into();
    }
    StartError::OtherFormat { folder: root.to_owned(), problem: Box::new(problem), detected, recipe }.into()
}
