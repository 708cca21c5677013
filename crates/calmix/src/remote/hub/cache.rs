//! The cache of the Hub's Python client: `models--OWNER--NAME` contains `refs/REVISION` with a commit, and `snapshots/COMMIT`
//! with the files, as links to `blobs/HASH`.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_io::error::FileError;
use calmix_io::safe_open;

use super::content_hash::{ContentHash, hexadecimal};
use super::listing::{HubFile, Listing, check_path};
use super::repository::Repository;

/// The maximum size of a reference in bytes.
const MAX_REFERENCE: u64 = 256;

/// The maximum number of files in a snapshot, and the maximum depth of folders.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 8;

/// The part of the cache with one repository.
#[derive(Debug)]
pub(super) struct HubCache {
    folder: PathBuf,
}

impl HubCache {
    pub(super) fn new(cache: &Path, repository: &Repository) -> Self {
        Self { folder: cache.join(format!("models--{}", repository.folder_name())) }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lists the cached files of a revision; `None` if there are none.
    pub(super) fn listing(&self, revision: &str) -> Result<Option<Listing>, FileError> {
        let Some(commit) = self.commit(revision) else { return Ok(None) };
        let mut files = Vec::new();
        list(&self.snapshot(&commit), "", 0, &mut files)?;
        if files.is_empty() {
            return Ok(None);
        }
        files.sort_by(|one: &HubFile, other| one.path.cmp(&other.path));
        Ok(Some(Listing { commit, licence: None, files }))
    }

    /// Returns the cached file of a commit, if it has the right size.
    pub(super) fn file(&self, commit: &str, file: &HubFile) -> Option<PathBuf> {
        // Follow the link into `blobs`. A copy of the file is compared with its hash, if that is known.
        let found = self.snapshot(commit).join(&file.path).canonicalize().ok()?;
        let metadata = fs::metadata(&found).ok()?;
        (metadata.is_file() && metadata.len() == file.bytes).then_some(found)
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// Returns the commit of a revision when it was last downloaded.
    fn commit(&self, revision: &str) -> Option<String> {
        let reference = self.folder.join("refs").join(revision);
        if let Ok(text) = safe_open::read_text(&reference, MAX_REFERENCE) {
            return hexadecimal(text.trim(), 40);
        }
        hexadecimal(revision, 40)
    }
}

/// Lists the files below a folder.
fn list(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<HubFile>) -> Result<(), FileError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(|error| FileError::new(folder, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        // A broken link means that the file was not downloaded.
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        if metadata.is_dir() && depth < MAX_DEPTH {
            list(&entry.path(), &path, depth + 1, files)?;
        } else if metadata.is_file() && check_path(&path).is_ok() && files.len() < MAX_FILES {
            files.push(HubFile { path, bytes: metadata.len(), hash: blob_hash(&entry.path()) });
        }
    }
    Ok(())
}

/// Returns the hash that the Hub listed for a file: the name of its link's target. `None` on systems without links.
fn blob_hash(link: &Path) -> Option<ContentHash> {
    let target = fs::read_link(link).ok()?;
    let name = target.file_name()?.to_str()?;
    ContentHash::sha256(name).or_else(|| ContentHash::git_blob(name))
}
