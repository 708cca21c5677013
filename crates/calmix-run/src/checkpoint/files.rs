//! Writes the files of a checkpoint.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, retry_transient};
use calmix_io::error::{FileError, FileProblem};
use serde::{Deserialize, Serialize};

use crate::run::is_plain;

/// The number of bytes to hash and then write while they are still in the CPU cache.
const CHUNK_BYTES: usize = 256 << 10;

/// A file of a checkpoint as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its length, in bytes.
    pub length: u64,
    /// Its BLAKE3, in hexadecimal.
    pub blake3: String,
}

/// Writes files into an uncommitted checkpoint. Many processes may write to the same folder; the process that
/// [commits](super::Writer::commit) receives what the others return.
#[derive(Debug, Clone)]
pub struct CheckpointFiles {
    pub(super) folder: ConfinedPath,
    pub(super) disk: Arc<dyn Disk>,
}

impl CheckpointFiles {
    /// Writes to a folder that a [`Writer`](super::Writer) in another process named.
    pub fn new(folder: &Path, disk: Arc<dyn Disk>) -> Self {
        let checkpoints = ConfinedPath::from(folder.parent().unwrap_or(folder));
        Self { folder: checkpoints.join(folder.file_name().unwrap_or_default()), disk }
    }

    /// Returns the folder, to be sent to other processes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file, and returns when it is on disk.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<Written, FileError> {
        if !is_plain(name) {
            let problem = FileProblem::Content(format!("{name:?} is not a valid name for a part"));
            return Err(FileError::new(&self.folder, problem));
        }
        let path = self.folder.join(name);
        let mut tried = false;
        retry_transient(&*self.disk, || {
            // An existing name is an error, unless a failed attempt has created it.
            if std::mem::replace(&mut tried, true) {
                remove(&*self.disk, &path)?;
            }
            self.write_once(name, &path, bytes)
        })
    }

    pub(super) fn write_once(
        &self,
        name: &str,
        path: &ConfinedPath,
        bytes: &[u8],
    ) -> Result<Written, FileError> {
        let cannot = |error| FileError::new(path, error);
        let mut file = self.disk.create(path).map_err(cannot)?;
        let mut content = blake3::Hasher::new();
        for piece in bytes.chunks(CHUNK_BYTES) {
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

/// Removes a file if it exists.
pub(crate) fn remove(disk: &dyn Disk, path: &ConfinedPath) -> Result<(), FileError> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::new(path, error)),
        _ => Ok(()),
    }
}
