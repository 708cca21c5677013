//! What a worker has to know about a run of a sweep.

use std::fmt::Debug;
use std::path::Path;

use anyhow::{Error, Result};
use calmix_io::shown::shown;
use calmix_recipe::sweep::SweepCell;
use calmix_recipe::{Layers, Recipe, Resolved};
use calmix_run::error::RunError;
use calmix_run::outcome::Outcome;
use calmix_run::read::inspect;
use calmix_vectors::VectorsError;

use crate::command::recipe_args::RecipeArgs;
use crate::error::CliError;
use crate::stop::Stop;

/// A run of a sweep, with everything that the user overrides.
pub trait SweepRun: Debug + Sync {
    /// The run as the sweep has it.
    fn cell(&self) -> &SweepCell;

    /// The same, to add settings to.
    fn cell_mut(&mut self) -> &mut SweepCell;

    /// Its recipe, before its dataset is read.
    fn resolved(&self) -> &Resolved;

    /// Checks what would fail in every attempt: the dataset and the device.
    ///
    /// # Errors
    /// Names what is missing.
    fn ready(&self) -> Result<()>;

    /// Refuses a run that was begun with another recipe: the sweep file has changed since.
    ///
    /// # Errors
    /// Names the change.
    fn refuse_changes(&self, run: &Path) -> Result<()>;

    /// Trains the run in this process: from its beginning, or from where it stopped.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn train(&self, run: &Path, overrides: &RecipeArgs, stop: &Stop) -> Result<Outcome>;

    /// Whether an error of the training means that another process trains the run.
    fn is_locked(&self, error: &Error) -> bool {
        let run = match error.downcast_ref::<VectorsError>() {
            Some(VectorsError::Run(error)) => Some(error),
            _ => error.downcast_ref::<RunError>(),
        };
        matches!(run, Some(RunError::Locked { .. }))
    }

    /// Its recipe, before its dataset is read.
    fn recipe(&self) -> &Recipe {
        &self.resolved().recipe
    }

    /// The dataset; empty if none is given.
    fn data(&self) -> &Path {
        Path::new(&self.recipe().dataset.path)
    }
}

/// Adds everything that the user overrides on top of layers; `dataset` is where `--datasets` has the dataset.
///
/// # Errors
/// If the path of the dataset is not UTF-8, or an option cannot be used.
pub fn over(
    layers: Layers,
    dataset: Option<&Path>,
    apply: impl FnOnce(Layers) -> Result<Layers>,
) -> Result<Layers> {
    let layers = match dataset {
        Some(folder) => {
            let Some(path) = folder.to_str() else {
                let message = format!("{}: its path is not UTF-8", shown(folder.display()));
                return Err(CliError::invalid(message).hint("rename the folder").into());
            };
            layers.set_to("dataset.path", path.to_owned())
        }
        None => layers,
    };
    apply(layers)
}

/// Refuses a run that was begun with another recipe than the planned one, except for some keys.
///
/// # Errors
/// Names the first change.
pub fn refuse_changes(run: &Path, planned: &Resolved, may_differ: impl Fn(&str) -> bool) -> Result<()> {
    let changes = inspect::changes_of_run(run, planned)?;
    let Some(change) = changes.iter().find(|change| !may_differ(&change.path)) else { return Ok(()) };
    let message = format!("{}: the sweep has changed since this run began: {change}", shown(run.display()));
    Err(CliError::invalid(message).hint("use another --sweep-dir, or delete the run").into())
}
