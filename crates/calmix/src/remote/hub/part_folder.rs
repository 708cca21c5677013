//! The folder in which files of a repository arrive: beside the weights, so that they are moved and not copied to their place.
//!
//! A file has its hash as its name there, so what has arrived is of use to a later call even if the repository has changed in
//! between. The folder stays if a download ends early, and goes when the model is in its place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::lock::Lock;
use calmix_io::safe_open;

use super::chosen_files::ChosenFile;
use super::listing::HubFile;
use super::repository::{Repository, encoded};

/// Begins the names of these folders; the weights folder shows no hidden folder as weights.
const PREFIX: &str = ".get-";
const LOCK: &str = ".lock";

/// Where the model is put together.
const COMPLETE: &str = "complete";

/// The folder of a repository, which this process alone writes to.
#[derive(Debug)]
pub(crate) struct PartFolder {
    path: ConfinedPath,
    /// Whether an earlier call has left something in it.
    was_there: bool,
    is_removed: bool,
    /// `None` on a file system without locks.
    _lock: Option<Lock>,
}

impl PartFolder {
    /// Opens the folder of a repository in the weights folder; creates both if they are missing.
    pub(crate) fn open(weights: &Path, repository: &Repository) -> Result<Self, FileError> {
        fs::create_dir_all(weights).map_err(|error| FileError::new(weights, error))?;
        let path = place(weights, repository);
        let was_there = safe_open::exists(&path);
        safe_open::create_folder_if_missing(&path)?;
        let lock = match Lock::take(&path.join(LOCK)) {
            Ok(lock) => Some(lock),
            Err(FileError { problem: FileProblem::NoLocks(_), .. }) => None,
            Err(error @ FileError { problem: FileProblem::Held(_), .. }) => {
                return Err(error.hint("it downloads the same model: wait until it is done"));
            }
            Err(error) => return Err(error),
        };
        let folder = Self { path, was_there, is_removed: false, _lock: lock };
        folder.remove_links().map_err(|error| FileError::new(&folder.path, error))?;
        Ok(folder)
    }

    /// Removes what [`assemble`](Self::assemble) made in a process that was killed, and parts that are also the files of
    /// weights in their place: writing to them would change the weights.
    fn remove_links(&self) -> io::Result<()> {
        let complete = self.path.join(COMPLETE);
        if safe_open::exists(&complete) {
            fs::remove_dir_all(&complete)?;
        }
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_file() && found.nlink() > 1 {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Where a file arrives.
    pub(super) fn part(&self, file: &HubFile) -> ConfinedPath {
        let name = match &file.hash {
            Some(hash) => hash.digits().to_owned(),
            None => encoded(&file.path),
        };
        self.path.join(name)
    }

    /// Bytes of a file that have arrived.
    pub(crate) fn arrived(&self, file: &HubFile) -> u64 {
        fs::symlink_metadata(self.part(file)).map_or(0, |found| found.len())
    }

    /// Reads a file that has arrived.
    pub(crate) fn read(&self, file: &HubFile, limit: u64) -> Result<Vec<u8>, FileError> {
        safe_open::read(self.part(file), limit)
    }

    /// Puts files that have arrived into a folder with their final names, and returns it.
    pub(crate) fn assemble(&self, files: &[ChosenFile]) -> Result<PathBuf, FileError> {
        let complete = self.path.join(COMPLETE);
        safe_open::create_folder_if_missing(&complete)?;
        for ChosenFile { file, stored } in files {
            let part = self.part(file);
            let target = complete.join(stored);
            // Links, because two names may have the same content, and a kill must not lose what has arrived. Some file systems
            // have none.
            let linked = fs::hard_link(&part, &target).or_else(|_| fs::copy(&part, &target).map(drop));
            let synced = linked.and_then(|()| File::open(&target)?.sync_all());
            synced.map_err(|error| FileError::new(&target, error))?;
        }
        Ok(complete.to_path_buf())
    }

    /// Removes what a process has left that was killed when the model was in its place.
    pub(crate) fn remove_leftover(weights: &Path, repository: &Repository) {
        if safe_open::exists(&place(weights, repository))
            && let Ok(folder) = Self::open(weights, repository)
        {
            folder.remove();
        }
    }

    /// Removes everything that has arrived.
    pub(crate) fn remove(mut self) {
        // What cannot be removed is found again by the next call for the same repository.
        let _ = fs::remove_dir_all(&self.path);
        // From now on a folder of this name is another process's.
        self.is_removed = true;
    }

    /// Removes everything that has arrived, unless an earlier call has begun it.
    pub(crate) fn remove_own(self) {
        if !self.was_there {
            self.remove();
        }
    }
}

impl Drop for PartFolder {
    /// Removes a folder in which nothing has arrived.
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut files = entries.filter(|entry| entry.file_name() != LOCK);
        if files.all(|entry| entry.metadata().is_ok_and(|found| found.is_file() && found.len() == 0)) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn place(weights: &Path, repository: &Repository) -> ConfinedPath {
    ConfinedPath::root(weights).join(format!("{PREFIX}{}", repository.folder_name()))
}
