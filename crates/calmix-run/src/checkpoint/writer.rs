//! How a checkpoint comes to be: parts, a manifest, and one rename that makes it visible.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{FileError, FileProblem};
use serde::{Deserialize, Serialize};

use super::manifest::{Identity, MANIFEST, Manifest};
use super::{CheckpointError, Checkpoints};
use crate::run::{Disk, Mark, atomic, is_plain};

/// Bytes that are hashed and then written while they are still in the cache.
const PIECE: usize = 256 << 10;

/// A file of a checkpoint, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its bytes.
    pub length: u64,
    /// Their blake3, in hexadecimal digits.
    pub blake3: String,
}

/// Writes files into a checkpoint in the making. Many processes may each have one for the same folder; what they
/// wrote goes to the one that [commits](Writer::commit).
#[derive(Debug, Clone)]
pub struct CheckpointFiles {
    folder: PathBuf,
    disk: Arc<dyn Disk>,
}

impl CheckpointFiles {
    /// Into the folder that a [`Writer`] of another process named.
    pub fn new(folder: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Self {
        Self { folder: folder.into(), disk }
    }

    /// The folder, for other processes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file, and returns when it is on the disk.
    ///
    /// # Errors
    /// If the name is not a plain one or taken, or the disk does not take it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<Written, FileError> {
        if !is_plain(name) {
            let problem = FileProblem::Content(format!("{name:?} is no name for a part"));
            return Err(FileError::new(&self.folder, problem));
        }
        let path = self.folder.join(name);
        let cannot = |error| FileError::new(&path, error);
        let mut file = self.disk.create(&path).map_err(cannot)?;
        let mut content = blake3::Hasher::new();
        for piece in bytes.chunks(PIECE) {
            content.update(piece);
            self.disk.write(&mut file, piece).map_err(|error| {
                let place = format!("byte {}", content.count() - piece.len() as u64);
                cannot(error).at(place).hint("is the disk full?")
            })?;
        }
        self.disk.sync(&file).map_err(cannot)?;
        drop::<File>(file);
        let blake3 = content.finalize().to_hex().to_string();
        Ok(Written { name: name.to_owned(), length: content.count(), blake3 })
    }
}

/// A checkpoint in the making. Dropped before it is committed, it is removed.
#[derive(Debug)]
pub struct Writer<'a> {
    step: u64,
    parts: CheckpointFiles,
    checkpoints: &'a mut Checkpoints,
    committed: bool,
}

/// A checkpoint that was made.
#[derive(Debug)]
pub struct Committed {
    /// The hash that names it among all others.
    pub hash: String,
    /// Steps whose checkpoints were removed, since enough newer ones are there.
    pub removed: Vec<u64>,
    /// Why old checkpoints could not be removed. The new one is whole all the same.
    pub trouble: Option<FileError>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(step: u64, checkpoints: &'a mut Checkpoints) -> Result<Self, FileError> {
        let disk = Arc::clone(&checkpoints.disk);
        let ((), folder) = atomic::make(&checkpoints.path(step), |scratch| disk.create_folder(scratch))?;
        Ok(Self { step, parts: CheckpointFiles { folder, disk }, checkpoints, committed: false })
    }

    /// Writes its files; [its folder](CheckpointFiles::folder) is for other processes that write theirs.
    pub fn parts(&self) -> &CheckpointFiles {
        &self.parts
    }

    /// Writes the manifest of all `files` and makes the checkpoint visible; then old ones are removed.
    ///
    /// # Errors
    /// If the files in the folder are not `files`, or the disk fails; then there is no new checkpoint, except when
    /// the very last call failed, which makes its name durable: then it can be used now, but may be gone after a
    /// power failure.
    pub fn commit(
        mut self,
        identity: Identity,
        journal: Mark,
        files: Vec<Written>,
    ) -> Result<Committed, CheckpointError> {
        let CheckpointFiles { folder, disk } = &self.parts;
        let manifest = Manifest::new(self.step, identity, journal, files);
        let path = folder.join(MANIFEST);
        manifest.check().map_err(|problem| FileError::new(&path, problem))?;
        let found = atomic::names(folder)?.into_iter().map(|(name, _)| name);
        let names: Vec<_> = manifest.files.iter().map(|file| file.name.clone()).collect();
        if !found.eq(names) {
            let problem =
                FileProblem::Content("the files here are not those that were said to be written".into());
            return Err(FileError::new(folder, problem).into());
        }
        let (bytes, hash) = manifest.to_bytes().map_err(|problem| FileError::new(&path, problem))?;
        let cannot = |error| FileError::new(&path, error);
        let mut file = disk.create(&path).map_err(cannot)?;
        disk.write(&mut file, &bytes).and_then(|()| disk.sync(&file)).map_err(cannot)?;
        drop::<File>(file);
        let cannot = |error| FileError::new(folder, error);
        disk.sync_folder(folder).map_err(cannot)?;
        disk.rename(folder, &self.checkpoints.path(self.step)).map_err(cannot)?;
        self.committed = true;
        let parent = &self.checkpoints.folder;
        disk.sync_folder(parent).map_err(|error| FileError::new(parent, error))?;
        self.checkpoints.usable.insert(self.step, true);
        let (removed, trouble) = self.checkpoints.collect(self.step);
        Ok(Committed { hash, removed, trouble })
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // What cannot be removed now is removed when the run is next opened.
            let _ = self.parts.disk.remove_folder(&self.parts.folder);
        }
    }
}
