//! The folder for files of a repository that are being downloaded. It is beside the weights, so that complete files are moved,
//! not copied.
//!
//! A file is named by its hash, so a later call can use it even if the repository has changed. The folder is kept if a download
//! ends early, and removed when the model is in its place.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::lock::Lock;
use calmix_io::safe_open;
use calmix_io::system::link_count;

use super::chosen_files::ChosenFile;
use super::listing::HubFile;
use super::repository::{Repository, encoded};

/// The prefix of these folders' names. They are hidden, and the weights folder does not list hidden folders.
const PREFIX: &str = ".get-";
const LOCK: &str = ".lock";

/// The subfolder in which the model is assembled.
const COMPLETE: &str = "complete";

/// The folder of a repository, which only this process writes to.
#[derive(Debug)]
pub(crate) struct PartFolder {
    path: ConfinedPath,
    /// Whether an earlier call left files in it.
    was_there: bool,
    is_removed: bool,
    /// `None` on a file system without locks.
    _lock: Option<Lock>,
}

impl PartFolder {
    /// Opens the folder of a repository in the weights folder; creates both if they are missing.
    pub(crate) fn open(weights: &Path, repository: &Repository) -> Result<Self, FileError> {
        safe_open::create_folders(weights).map_err(|error| FileError::new(weights, error))?;
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

    /// Removes the result of [`assemble`](Self::assemble) in a killed process, and parts that are hard links to weights already
    /// in their place: writing to them would change the weights.
    fn remove_links(&self) -> io::Result<()> {
        let complete = self.path.join(COMPLETE);
        if safe_open::exists(&complete) {
            fs::remove_dir_all(&complete)?;
        }
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.metadata()?.is_file() && link_count(&File::open(entry.path())?)? > 1 {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Returns the path of a file that is being downloaded.
    pub(super) fn part(&self, file: &HubFile) -> ConfinedPath {
        let name = match &file.hash {
            Some(hash) => hash.digits().to_owned(),
            None => encoded(&file.path),
        };
        self.path.join(name)
    }

    /// Returns the number of bytes of a file that have arrived.
    pub(crate) fn arrived(&self, file: &HubFile) -> u64 {
        fs::symlink_metadata(self.part(file)).map_or(0, |found| found.len())
    }

    /// Reads a complete file.
    pub(crate) fn read(&self, file: &HubFile, limit: u64) -> Result<Vec<u8>, FileError> {
        safe_open::read(self.part(file), limit)
    }

    /// Puts complete files into a folder under their final names, and returns the folder.
    pub(crate) fn assemble(&self, files: &[ChosenFile]) -> Result<PathBuf, FileError> {
        let complete = self.path.join(COMPLETE);
        safe_open::create_folder_if_missing(&complete)?;
        for ChosenFile { file, stored } in files {
            let part = self.part(file);
            let target = complete.join(stored);
            // Link, not move: two names may have the same content, and a kill must lose nothing. Copy on file systems without
            // links.
            let linked = fs::hard_link(&part, &target).or_else(|_| fs::copy(&part, &target).map(drop));
            let synced = linked.and_then(|()| File::open(&target)?.sync_all());
            synced.map_err(|error| FileError::new(&target, error))?;
        }
        Ok(complete.to_path_buf())
    }

    /// Removes the folder of a process that was killed when its model was already in its place.
    pub(crate) fn remove_leftover(weights: &Path, repository: &Repository) {
        if safe_open::exists(&place(weights, repository))
            && let Ok(folder) = Self::open(weights, repository)
        {
            folder.remove();
        }
    }

    /// Removes the folder with all files.
    pub(crate) fn remove(mut self) {
        // If the folder cannot be removed, the next call for the same repository finds it.
        let _ = fs::remove_dir_all(&self.path);
        // Another process may now create a folder of this name, which must not be removed on drop.
        self.is_removed = true;
    }

    /// Removes the folder with all files, unless an earlier call started it.
    pub(crate) fn remove_own(self) {
        if !self.was_there {
            self.remove();
        }
    }
}

impl Drop for PartFolder {
    /// Removes the folder if it is empty.
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
