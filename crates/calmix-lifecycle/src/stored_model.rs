//! The model of a run that has finished, as the run wrote it.

use std::path::Path;

use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_recipe::Recipe;
use calmix_run::model_info::{HeadInfo, LONGEST_METADATA, ModelInfo};
use calmix_run::read;
use calmix_run::run::{Paths, RunFile};

use crate::error::LifecycleError;
use crate::run_samples::RunSamples;

/// Reads the weights of a finished run, of at most `longest` bytes without their metadata, and their `model.json`; checks
/// both against what the recipe and the samples say.
///
/// # Errors
/// If they are not the weights that the run wrote, for its network, its classes and its samples.
pub fn model_of(
    folder: &Path,
    longest: u64,
    recipe: &Recipe,
    samples: &RunSamples,
    head: Option<HeadInfo>,
) -> Result<(Vec<u8>, ModelInfo), LifecycleError> {
    let path = Paths::new(folder).file(RunFile::Model)?;
    let model = safe_open::read(&path, longest + LONGEST_METADATA)?;
    let info = read::model_info(folder)?;
    let wanted = ModelInfo { head, ..ModelInfo::new(recipe, &samples.classes, samples.shrunk(), &model) };
    let Some(problem) = info.difference(&wanted) else { return Ok((model, info)) };
    let path = Paths::new(folder).file(RunFile::ModelInfo)?;
    let hint = "restore model.safetensors and model.json as the run wrote them";
    Err(FileError::new(path, FileProblem::Changed(problem)).hint(hint).into())
}
