//! The preparation of a run, on images or on the user's own vectors.

use std::path::Path;
use std::sync::Arc;

use calmix_data::dataset::Dataset;
use calmix_data::default_paths::folder_for_output;
use calmix_data::error::DataError;
use calmix_data::split::LabelSplit;
use calmix_formats::error::FormatProblem;
use calmix_head::samples::check_classes;
use calmix_io::disk::WarningDisk;
use calmix_recipe::{Data, Layers, Resolved};
use calmix_run::run_folder::{RunFolder, RunPlace};
use toml::Value;

use super::backbone::BackboneChoice;
use super::dataset_settings::choose_splits;
use super::draft::{CompletedDraft, Draft};
use crate::error::LifecycleError;
use crate::prepared_dataset::open_dataset;
use crate::run_samples::VectorShape;
use crate::splits::draw_split;
use crate::start_context::StartContext;

/// The origin of settings that follow from the contents of the vector file.
pub const FILE_CONTENTS: &str = "contents of the vectors' file";

#[derive(Debug)]
pub struct PreparedRun {
    /// The recipe, with all settings that the dataset and the weights decide.
    pub resolved: Resolved,
    pub dataset: Dataset,
    /// The labels that are trained on, and those that are held out.
    pub split: LabelSplit,
    /// The backbone, if calmix chose it.
    pub backbone: Option<BackboneChoice>,
    /// The folder of the run. It is removed if this is dropped before the run starts.
    pub folder: RunFolder,
}

/// Claims the folder of a run, opens or prepares its dataset, and completes its recipe.
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
    let dataset = open_dataset(data, folder.path(), &mut context)?;
    let CompletedDraft { resolved, split, backbone } = draft.complete(&dataset, &mut context)?;
    Ok(PreparedRun { resolved, dataset, split, backbone, folder })
}

/// Claims the folder of a run on vectors, opens or prepares its dataset, and completes its recipe.
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
    let dataset = open_dataset(data, folder.path(), &mut context)?;
    let mut decided = choose_splits(&resolved, &mut recipe, &dataset, &mut *context.notify);
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

/// Divides the views after the first into weak and strong ones, half each. A single view serves as both.
pub fn view_settings(views: usize) -> [(&'static str, Value); 2] {
    let more = views.saturating_sub(1);
    let weak = more / 2;
    let number = |views: usize| Value::Integer(i64::try_from(views).unwrap_or(i64::MAX));
    [("network.weak_views", number(weak)), ("network.strong_views", number(more - weak))]
}
