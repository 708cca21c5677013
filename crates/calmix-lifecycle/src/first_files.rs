//! The files that a run writes when it begins.

use calmix_data::error::DataError;
use calmix_recipe::Resolved;
use calmix_run::run::{Run, RunEnvironment, RunFile};

use crate::error::LifecycleError;
use crate::run_samples::RunSamples;

/// Writes the split, the environment, the summary and the recipe of a run.
///
/// # Errors
/// If one of them cannot be written.
pub fn write_first_files(
    run: &Run,
    recipe: &Resolved,
    samples: &RunSamples,
    environment: &RunEnvironment,
) -> Result<(), LifecycleError> {
    let split = samples.split.to_bytes();
    let split = split.map_err(|problem| DataError::new(run.paths().folder(), problem))?;
    run.write(RunFile::Split, &split)?;
    run.write_json(RunFile::Environment, environment)?;
    run.write_json(RunFile::Summary, &samples.summary(recipe))?;
    // Last: a folder with a recipe is a run that can be resumed.
    run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
    Ok(())
}
