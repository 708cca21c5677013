//! The meaning of a folder of images: a split, a class, or a group of classes.

use serde::{Deserialize, Serialize};

/// The subsets, each with its recognised folder names, in any case.
pub(in crate::source) const SPLITS: [(&str, &[&str]); 4] = [
    (TRAIN, &["train", "training"]),
    ("val", &["val", "valid", "validation"]),
    ("test", &["test", "testing"]),
    (UNLABELLED, &["unlabelled", "unlabeled"]),
];

pub(in crate::source) const TRAIN: &str = "train";

/// The subset of images without labels.
pub(in crate::source) const UNLABELLED: &str = "unlabelled";

/// The interpretation of a dataset's folders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FolderLayout {
    /// Detected from their names and contents; an error if two readings are possible.
    #[default]
    Auto,
    /// Every folder in the root is a class, whatever its name, except `unlabelled`.
    Classes,
    /// Folders called `train`, `val`, `test` or `unlabelled` are splits; without `train`, other folders are its classes.
    Splits,
    /// The folders in the root, or in each split, are groups of classes; their subfolders are the classes.
    Nested,
}

/// A folder whose files share one class, or have none.
#[derive(Debug)]
pub(in crate::source) struct ClassFolder {
    pub(in crate::source) subset: &'static str,
    pub(in crate::source) folder: String,
    pub(in crate::source) class: Option<String>,
}

/// Returns the split with this folder name, if it is recognised.
pub(in crate::source) fn split(folder: &str) -> Option<&'static str> {
    let is_called = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(folder));
    SPLITS.iter().find(|(_, names)| is_called(names)).map(|(name, _)| *name)
}
