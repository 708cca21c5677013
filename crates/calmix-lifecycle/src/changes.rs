//! What a resumed run, or one that is evaluated again, may change: its recipe in part, and neither its dataset nor its split.

use std::path::{Path, PathBuf};

use calmix_data::error::DataError;
use calmix_data::split::LabelSplit;
use calmix_recipe::{CorruptPolicy, Resolved, differences};
use calmix_run::checkpoint::Identity;
use calmix_run::read;
use calmix_run::run::RunEnvironment;

use crate::error::LifecycleError;

/// The fingerprint of the dataset, and the hash of the split, that a run started with.
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

/// Refuses a recipe that would train a run differently from the one that it began with.
///
/// # Errors
/// [`LifecycleError::Changed`] with every key that may not change.
pub fn check_unchanged(before: &Resolved, now: &Resolved, folder: &Path) -> Result<(), LifecycleError> {
    let changes: Vec<_> = differences(before, now).into_iter().filter(|change| !change.may_change).collect();
    if changes.is_empty() {
        return Ok(());
    }
    Err(LifecycleError::Changed { path: folder.to_owned(), changes })
}

/// Returns the changed recipe if it is still one of the same run.
pub fn changed_recipe(
    before: &Resolved,
    mut now: Resolved,
    folder: &Path,
) -> Result<Resolved, LifecycleError> {
    check_unchanged(before, &now, folder)?;
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The prepared dataset may still be the one in the run's folder: only the files show whether this is the same dataset,
        // and a file that is left out would not.
        now.recipe.loader.on_corrupt = CorruptPolicy::Stop;
    }
    Ok(now)
}

/// Refuses to continue a run if the list of unlabelled samples has changed since it started: the run would use the samples
/// that it stored, not those that the user lists now.
///
/// # Errors
/// [`LifecycleError::OtherList`], or what cannot be read of the run.
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
