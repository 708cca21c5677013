//! `origin.json` beside weights: their repository, commit and files.

use std::fs;
use std::path::Path;

use calmix_io::safe_open;
use serde::{Deserialize, Serialize};

use super::repository::Repository;

/// The file beside the weights.
pub(crate) const ORIGIN: &str = "origin.json";

/// The maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The origin of downloaded weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The address of the Hub.
    pub(crate) endpoint: String,
    pub(crate) repository: String,
    /// The revision that was requested.
    pub(crate) revision: String,
    pub(crate) commit: String,
    pub(crate) licence: Option<String>,
    /// The files; the first is the model.
    pub(crate) files: Vec<OriginFile>,
}

/// A file of a repository, and its copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OriginFile {
    /// The path in the repository.
    pub(crate) path: String,
    /// The name of the copy, beside `origin.json`.
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl Origin {
    /// Reads the origin of the weights in a folder; `None` if they were not downloaded, or their files are missing.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let text = safe_open::read(&folder.join(ORIGIN), MAX_BYTES).ok()?;
        let origin: Self = serde_json::from_slice(&text).ok()?;
        let is_there = |file: &OriginFile| {
            let found = fs::symlink_metadata(folder.join(&file.file));
            found.is_ok_and(|found| found.is_file() && found.len() == file.bytes)
        };
        (!origin.files.is_empty() && origin.files.iter().all(is_there)).then_some(origin)
    }

    /// Returns whether the weights are from this commit, and from the file `requested` if any.
    pub(crate) fn is(&self, repository: &Repository, commit: &str, requested: Option<&str>) -> bool {
        let is_requested = |path: &str| self.files.first().is_some_and(|model| model.path == path);
        self.repository == repository.to_string()
            && self.commit == commit
            && requested.is_none_or(is_requested)
    }
}
