//! Prepares a run on images.

use std::path::Path;
use std::sync::Arc;

use calmix_data::default_place::folder_for_output;
use calmix_io::disk::WarningDisk;
use calmix_run::run_folder::{RunFolder, RunPlace};

use super::draft::{CompletedDraft, Draft};
use super::prepared_run::{PreparedRun, StartContext};
use crate::error::LifecycleError;
use crate::table::open_table;

/// Claims the folder of a run, opens or makes the table of its dataset, and completes its recipe.
///
/// # Errors
/// If the recipe lacks something, the folder is in use, the dataset cannot be used or is not of the recipe's format.
pub fn prepare_run(
    draft: &Draft,
    place: &RunPlace,
    mut context: StartContext<'_>,
) -> Result<PreparedRun, LifecycleError> {
    draft.resolved.ready()?;
    let disk = Arc::new(WarningDisk(Arc::clone(&context.warn)));
    let data = &draft.resolved.recipe.dataset;
    let beside = || folder_for_output(Path::new(&data.path));
    let folder = RunFolder::claim(place, beside, draft.base().unwrap_or("run"), disk)?;
    let dataset = open_table(data, folder.path(), context.stop, &context.warn, &mut *context.notify)?;
    let CompletedDraft { resolved, split, backbone } = draft.complete(&dataset, &mut context)?;
    Ok(PreparedRun { resolved, dataset, split, backbone, folder })
}
