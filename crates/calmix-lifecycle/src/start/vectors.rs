//! Prepares a run on vectors that the user already has.

use std::path::Path;
use std::sync::Arc;

use calmix_data::default_place::folder_for_output;
use calmix_data::error::DataError;
use calmix_formats::error::FormatProblem;
use calmix_head::samples::check_classes;
use calmix_io::disk::WarningDisk;
use calmix_recipe::{Data, Layers};
use calmix_run::run_folder::{RunFolder, RunPlace};
use toml::Value;

use super::prepared_run::{PreparedRun, StartContext};
use crate::error::LifecycleError;
use crate::splits::draw_split;
use crate::table::open_table;
use crate::table::table_splits::take_splits;
use crate::vector_shape::VectorShape;

/// The origin of settings that the contents of the vectors' file decide.
pub const FILE_CONTENTS: &str = "contents of the vectors' file";

/// Claims the folder of a run on vectors, opens or makes the table of its dataset, and completes its recipe.
///
/// # Errors
/// If the recipe lacks something, the folder is in use, or the vectors or their labels cannot be used.
pub fn prepare_vectors(
    layers: &Layers,
    place: &RunPlace,
    mut context: StartContext<'_>,
) -> Result<PreparedRun, LifecycleError> {
    let resolved = layers.clone().resolve()?;
    resolved.ready()?;
    let mut recipe = resolved.recipe.clone();
    let beside = || folder_for_output(Path::new(&resolved.recipe.dataset.path));
    let disk = Arc::new(WarningDisk(Arc::clone(&context.warn)));
    let folder = RunFolder::claim(place, beside, layers.base().unwrap_or("run"), disk)?;
    let data = &resolved.recipe.dataset;
    let dataset = open_table(data, folder.path(), context.stop, &context.warn, &mut *context.notify)?;
    let mut decided = take_splits(&resolved, &mut recipe, &dataset, &mut *context.notify);
    decided.extend(view_settings(VectorShape::of(&dataset)?.views));
    let split = draw_split(&recipe, &dataset)?;
    check_classes(split.labelled().len(), dataset.classes().len()).map_err(|error| {
        let Data { path, labels, .. } = data;
        let place = if labels.is_empty() { path } else { labels };
        let problem = FormatProblem::Content(error.to_string());
        DataError::new(place, problem).hint("name the column of the classes with --label-column")
    })?;
    let resolved = layers.clone().decided(FILE_CONTENTS, decided).resolve()?;
    Ok(PreparedRun { resolved, dataset, split, backbone: None, folder })
}

/// The views after the first: half of them weak, the others strong. A single view serves for both.
pub fn view_settings(views: usize) -> [(&'static str, Value); 2] {
    let more = views.saturating_sub(1);
    let weak = more / 2;
    let number = |views: usize| Value::Integer(i64::try_from(views).unwrap_or(i64::MAX));
    [("network.weak_views", number(weak)), ("network.strong_views", number(more - weak))]
}
