//! The default folders that calmix writes to: never inside the dataset.

use std::env;
use std::path::{Path, PathBuf};

/// The folder in which `runs/`, `prepared/`, `features/` and `sweeps/` are created: the working folder, as an empty path, or,
/// if that is inside the dataset, the path to the folder that contains the dataset.
pub fn folder_for_output(dataset: &Path) -> PathBuf {
    levels_to_leave(dataset).map(|levels| (0..levels).map(|_| "..").collect()).unwrap_or_default()
}

/// The number of levels from the working folder up to the folder that contains the dataset; `None` if it is not inside the
/// dataset.
fn levels_to_leave(dataset: &Path) -> Option<usize> {
    let here = env::current_dir().ok()?.canonicalize().ok()?;
    let dataset = dataset.canonicalize().ok()?;
    let depth = here.strip_prefix(&dataset).ok()?.components().count();
    // No folder contains a dataset that is a whole file system.
    dataset.parent()?;
    Some(depth + 1)
}

/// The default folder for the prepared table of a dataset.
pub fn default_table(dataset: &Path) -> PathBuf {
    let name = |path: PathBuf| path.file_name().map(PathBuf::from);
    let named = std::path::absolute(dataset).ok().and_then(name);
    // `..` has no name of its own.
    let name = named.or_else(|| dataset.canonicalize().ok().and_then(name)).unwrap_or_default();
    folder_for_output(dataset).join("prepared").join(name)
}
