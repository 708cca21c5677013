//! Makes a checkpoint: files, a manifest, and a rename that makes it visible.

use std::io;
use std::sync::Arc;

use calmix_io::atomic_file;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, retry_transient};
use calmix_io::error::{FileError, FileProblem};

use super::files::{CheckpointFiles, Written, remove};
use super::folder::CheckpointFolder;
use super::manifest::{Identity, MANIFEST, Manifest};
use crate::error::RunError;
use crate::run::Mark;

/// A checkpoint that is being written. Dropping it before it is committed removes it.
#[derive(Debug)]
pub struct Writer<'a> {
    step: u64,
    parts: CheckpointFiles,
    checkpoints: &'a mut CheckpointFolder,
    /// Whether it replaces a checkpoint of the same step.
    replaces: bool,
    committed: bool,
}

/// A committed checkpoint.
#[derive(Debug)]
pub struct Committed {
    /// The hash that identifies it.
    pub hash: String,
    /// The steps whose checkpoints were removed because enough newer ones exist.
    pub removed: Vec<u64>,
    /// Why old checkpoints could not be removed. The new one is complete nevertheless.
    pub cleanup_error: Option<FileError>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        step: u64,
        checkpoints: &'a mut CheckpointFolder,
        replaces: bool,
    ) -> Result<Self, FileError> {
        let disk = Arc::clone(&checkpoints.disk);
        let path = checkpoints.of_step(step);
        let make = || atomic_file::make(&path, |scratch| disk.create_folder(scratch));
        let ((), folder) = retry_transient(&*disk, make)?;
        let parts = CheckpointFiles { folder, disk };
        Ok(Self { step, parts, checkpoints, replaces, committed: false })
    }

    /// Returns the writer of its files; other processes write theirs into [its folder](CheckpointFiles::folder).
    pub fn parts(&self) -> &CheckpointFiles {
        &self.parts
    }

    /// Writes the manifest of all `files`, makes the checkpoint visible, and then removes old ones.
    ///
    /// # Errors
    /// If the files in the folder differ from `files`, or the disk fails. There is then no new checkpoint, unless only the
    /// last call failed, which makes its name durable: it is then usable now, but may be gone after a power failure.
    pub fn commit(
        self,
        identity: Identity,
        journal: Mark,
        files: Vec<Written>,
    ) -> Result<Committed, RunError> {
        self.commit_files(identity, journal, files).map_err(RunError::of_run_file)
    }

    fn commit_files(
        mut self,
        identity: Identity,
        journal: Mark,
        files: Vec<Written>,
    ) -> Result<Committed, FileError> {
        let CheckpointFiles { folder, disk } = &self.parts;
        let manifest = Manifest::new(self.step, identity, journal, files);
        let path = folder.join(MANIFEST);
        manifest.check().map_err(|problem| FileError::new(&path, problem))?;
        let found =
            retry_transient(&**disk, || atomic_file::names(folder))?.into_iter().map(|(name, _)| name);
        let names: Vec<_> = manifest.files.iter().map(|file| file.name.clone()).collect();
        if !found.eq(names) {
            let problem =
                FileProblem::Content("the files in this folder are not the ones that the ranks wrote".into());
            return Err(FileError::new(folder, problem));
        }
        let (bytes, hash) = manifest.to_bytes().map_err(|problem| FileError::new(&path, problem))?;
        self.parts.write_manifest(&bytes)?;
        let sync = |folder: &ConfinedPath| {
            retry_transient(&**disk, || {
                disk.sync_folder(folder).map_err(|error| FileError::new(folder, error))
            })
        };
        sync(folder)?;
        let path = self.checkpoints.of_step(self.step);
        let mut before = None;
        if self.replaces {
            let scratch = atomic_file::scratch(&path);
            rename(&**disk, &path, &scratch)?;
            before = Some(scratch);
        }
        rename(&**disk, folder, &path).inspect_err(|_| {
            // Restore the old one if possible.
            let _ = before.as_ref().map(|before| disk.rename(before, &path));
        })?;
        self.committed = true;
        sync(&self.checkpoints.path)?;
        self.checkpoints.usable.insert(self.step, true);
        // If this fails, the next process that opens the run removes it.
        let _ = before.map(|before| disk.remove_folder(&before));
        let (removed, cleanup_error) = self.checkpoints.collect(self.step);
        Ok(Committed { hash, removed, cleanup_error })
    }
}

impl CheckpointFiles {
    /// Writes the manifest, whose name no file of a checkpoint may have.
    fn write_manifest(&self, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.folder.join(MANIFEST);
        let mut tried = false;
        retry_transient(&*self.disk, || {
            if std::mem::replace(&mut tried, true) {
                remove(&*self.disk, &path)?;
            }
            self.write_once(MANIFEST, &path, bytes).map(drop)
        })
    }
}

/// Renames a folder. An attempt that returned an error may still have succeeded.
fn rename(disk: &dyn Disk, from: &ConfinedPath, to: &ConfinedPath) -> Result<(), FileError> {
    let mut tried = false;
    retry_transient(disk, || match disk.rename(from, to) {
        Err(error) if tried && error.kind() == io::ErrorKind::NotFound && to.exists() => Ok(()),
        Err(error) => {
            tried = true;
            Err(FileError::new(from, error))
        }
        Ok(()) => Ok(()),
    })
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // Leftovers are removed when the run is next opened.
            let _ = self.parts.disk.remove_folder(&self.parts.folder);
        }
    }
}
