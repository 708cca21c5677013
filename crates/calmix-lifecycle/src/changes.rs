//! The changes that are allowed when a run is resumed or evaluated again: some keys of its recipe, but neither its dataset nor
//! its split.

use std::path::{Path, PathBuf};

use calmix_data::error::DataError;
use calmix_data::split::LabelSplit;
use calmix_recipe::{CorruptPolicy, Resolved, differences};
use calmix_run::checkpoint::Identity;
use calmix_run::read;
use calmix_run::run::RunEnvironment;

use crate::error::LifecycleError;

/// The inputs that a run started with: the fingerprint of its dataset and the hash of its split.
#[derive(Debug, Clone)]
pub struct RunInputs {
    pub dataset: String,
    pub split: String,
}

impl RunInputs {
    pub fn of(folder: &Path) -> Result<Self, LifecycleError> {
        let RunEnvironment { dataset, split, .. } = read::environment(folder)?;
        Ok(Self { dataset, split })
    }
}

impl From<&Identity> for RunInputs {
    fn from(identity: &Identity) -> Self {
        Self { dataset: identity.dataset.clone(), split: identity.split.clone() }
    }
}

/// Refuses a recipe that would change the training of a run.
///
/// # Errors
/// [`LifecycleError::Changed`] with every changed key that must not change.
pub fn check_unchanged(before: &Resolved, now: &Resolved, folder: &Path) -> Result<(), LifecycleError> {
    let changes: Vec<_> = differences(before, now).into_iter().filter(|change| !change.may_change).collect();
    if changes.is_empty() {
        return Ok(());
    }
    Err(LifecycleError::Changed { path: folder.to_owned(), changes })
}

/// Returns the new recipe of a run, if it changes only keys that may change.
pub fn changed_recipe(
    before: &Resolved,
    mut now: Resolved,
    folder: &Path,
) -> Result<Resolved, LifecycleError> {
    check_unchanged(before, &now, folder)?;
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The prepared dataset in the run's folder may still be used, so the files must show whether the dataset is the same. A
        // corrupt file that is left out would hide a difference.
        now.recipe.loader.on_corrupt = CorruptPolicy::Stop;
    }
    Ok(now)
}

/// Refuses to continue a run if the list of unlabelled samples has changed since it started: the run would use the samples that
/// it stored, not those that the user lists now.
///
/// # Errors
/// [`LifecycleError::OtherList`]; the errors of reading the run.
pub fn check_list_unchanged(
    resolved: &Resolved,
    split: &LabelSplit,
    folder: &Path,
) -> Result<(), LifecycleError> {
    if !split.is_listed() {
        return Ok(());
    }
    let now = split.hash().map_err(|problem| DataError::new(folder, problem))?;
    if read::environment(folder)?.split == now {
        return Ok(());
    }
    let list = PathBuf::from(&resolved.recipe.labels.unlabelled_file);
    Err(LifecycleError::OtherList { path: folder.to_owned(), list })
}
