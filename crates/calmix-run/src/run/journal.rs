//! The file of events: append-only, and continued byte for byte by a resumed run.
//!
//! A checkpoint contains a [`Mark`]: the length of the file and the hash of its content. Resuming truncates the file there,
//! which removes the lines of steps that will be repeated and an incomplete line left by a kill, so an interrupted run ends
//! with the same file as an uninterrupted one. If the bytes before the mark differ from those that the checkpoint recorded,
//! another program changed the file, and the run refuses to truncate it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, retry_transient};
use serde::{Deserialize, Serialize};

use calmix_io::error::{FileError, FileProblem};
use calmix_io::lock::Lock;
use calmix_io::safe_open::open_to_write;

/// A position in the file of events, with the hash of the bytes before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The position in bytes.
    pub length: u64,
    /// The BLAKE3 of the bytes before it, in hexadecimal.
    pub blake3: String,
}

impl Mark {
    /// Returns the start of the file, where a run without a checkpoint resumes.
    pub fn start() -> Self {
        Self { length: 0, blake3: blake3::Hasher::new().finalize().to_hex().to_string() }
    }
}

/// The file of events of a run that this process may write.
#[derive(Debug)]
pub struct Journal {
    path: ConfinedPath,
    file: File,
    length: u64,
    content: blake3::Hasher,
    torn: bool,
    /// Lines that may not be on disk yet; they are written again if synchronising fails.
    unsynced: Vec<u8>,
    /// Whether the disk may have lost these lines.
    lost: bool,
    disk: Arc<dyn Disk>,
    _lock: Arc<Lock>,
}

impl Journal {
    pub(super) fn resume(
        path: ConfinedPath,
        mark: &Mark,
        disk: Arc<dyn Disk>,
        lock: Arc<Lock>,
    ) -> Result<Self, FileError> {
        // Not opened in append mode, in which some systems refuse to truncate.
        let file = open_to_write(&path)?;
        let content = read(&path, &file, mark)?;
        // A checkpoint relies on the file, so its name must be as durable as its content.
        disk.sync_folder(&path.folder()).map_err(|error| FileError::new(path.folder(), error))?;
        let unsynced = Vec::new();
        let length = mark.length;
        let mut journal =
            Self { path, file, length, content, torn: true, unsynced, lost: false, disk, _lock: lock };
        journal.repair()?;
        Ok(journal)
    }

    /// Appends a line, given without its line break.
    ///
    /// # Errors
    /// If it contains a line break, or cannot be written. In the latter case, no part of it remains.
    pub fn append(&mut self, line: &str) -> Result<(), FileError> {
        if line.contains('\n') {
            let problem = FileProblem::Content("a line contains a line break".into());
            return Err(FileError::new(&self.path, problem).at(format!("byte {}", self.length)));
        }
        let bytes = [line.as_bytes(), b"\n"].concat();
        let disk = Arc::clone(&self.disk);
        retry_transient(&*disk, || self.append_once(&bytes))?;
        self.length += bytes.len() as u64;
        self.content.update(&bytes);
        self.unsynced.extend(bytes);
        Ok(())
    }

    fn append_once(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.repair()?;
        self.torn = true;
        self.disk.write(&mut self.file, bytes).map_err(|error| {
            // If this also fails, the next line tries it again before it is written.
            let _ = self.repair();
            FileError::new(&self.path, error).hint("is the disk full?")
        })?;
        self.torn = false;
        Ok(())
    }

    /// Returns the end of the file for a checkpoint, once everything before it is on disk.
    pub fn mark(&mut self) -> Result<Mark, FileError> {
        let disk = Arc::clone(&self.disk);
        retry_transient(&*disk, || self.sync())?;
        self.unsynced.clear();
        Ok(Mark { length: self.length, blake3: self.content.finalize().to_hex().to_string() })
    }

    /// Synchronises all lines. If that failed before, the disk may have dropped them, so they are written again.
    fn sync(&mut self) -> Result<(), FileError> {
        self.repair()?;
        if self.lost {
            let first = self.length - self.unsynced.len() as u64;
            self.torn = true;
            let written = self.disk.truncate(&self.file, first);
            let written = written.and_then(|()| self.file.seek(SeekFrom::Start(first)));
            let written = written.and_then(|_| self.disk.write(&mut self.file, &self.unsynced));
            written.map_err(|error| FileError::new(&self.path, error))?;
            self.torn = false;
        }
        self.lost = true;
        self.disk.sync(&self.file).map_err(|error| FileError::new(&self.path, error))?;
        self.lost = false;
        Ok(())
    }

    /// Truncates the file after the last complete line.
    fn repair(&mut self) -> Result<(), FileError> {
        if self.torn {
            let cut = self.disk.truncate(&self.file, self.length);
            let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
            cut.map_err(|error| FileError::new(&self.path, error))?;
            self.torn = false;
        }
        Ok(())
    }
}

/// Hashes the bytes before `mark`, and checks that they are the recorded ones.
fn read(path: &Path, mut file: &File, mark: &Mark) -> Result<blake3::Hasher, FileError> {
    let cannot = |error: io::Error| FileError::new(path, error);
    let changed = |problem: String, place: u64| {
        let hint = "restore the file as the run left it, or start a new run";
        FileError::new(path, FileProblem::Changed(problem)).at(format!("byte {place}")).hint(hint)
    };
    let mut content = blake3::Hasher::new();
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    io::copy(&mut file.take(mark.length), &mut content).map_err(cannot)?;
    let found = content.count();
    if found < mark.length {
        let problem =
            format!("the file ends here, but had {} bytes when the checkpoint was written", mark.length);
        return Err(changed(problem, found));
    }
    if content.finalize().to_hex().as_str() != mark.blake3 {
        let problem = "the bytes before this place differ from those that the checkpoint recorded".to_owned();
        return Err(changed(problem, mark.length));
    }
    Ok(content)
}
