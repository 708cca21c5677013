//! What a resumed run, or one that is evaluated again, may change of its recipe.

use std::path::Path;

use calmix_recipe::{CorruptPolicy, Resolved, differences};

use crate::error::LifecycleError;

/// Refuses a recipe that would train a run differently than the one that it began with.
///
/// # Errors
/// [`LifecycleError::Changed`] with every key that may not change.
pub fn refuse_changes(before: &Resolved, now: &Resolved, folder: &Path) -> Result<(), LifecycleError> {
    let changes: Vec<_> = differences(before, now).into_iter().filter(|change| !change.may_change).collect();
    if changes.is_empty() {
        return Ok(());
    }
    Err(LifecycleError::Changed { path: folder.to_owned(), changes })
}

/// The changed recipe, if it still is one of the same run.
///
/// # Errors
/// Names the keys that may not change.
pub fn same_run(before: &Resolved, mut now: Resolved, folder: &Path) -> Result<Resolved, LifecycleError> {
    refuse_changes(before, &now, folder)?;
    if now.recipe.dataset.path != before.recipe.dataset.path {
        // The table may still be the one in the run's folder: only the files show whether this is the same dataset, and
        // one that is left out would not.
        now.recipe.loader.on_corrupt = CorruptPolicy::Stop;
    }
    Ok(now)
}
