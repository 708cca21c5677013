//! Where calmix writes unless the user says otherwise: never into the dataset.

use std::path::{Path, PathBuf};

/// What goes before the default places `prepared/…` and `runs/…`: nothing or, where the working folder is in the dataset,
/// the path to the folder beside it.
pub(crate) fn beside(dataset: &Path) -> PathBuf {
    let inside = || {
        let (here, dataset) =
            (std::env::current_dir().ok()?.canonicalize().ok()?, dataset.canonicalize().ok()?);
        let depth = here.strip_prefix(&dataset).ok()?.components().count();
        // A dataset that is a whole file system has nothing beside it.
        dataset.parent()?;
        Some((0..=depth).map(|_| "..").collect())
    };
    inside().unwrap_or_default()
}
