//! Reads files that may be incomplete, swapped or forged: sizes are checked before memory is allocated, hashes before use.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::transient::BackOff;

use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open::{open, read};

use super::files::Written;
use crate::error::RunError;

/// Why a checkpoint is unusable.
#[derive(Debug)]
pub enum Fault {
    /// It is damaged.
    Damaged(FileError),
    /// The system could not read it, even after several attempts. It may be intact.
    Unreadable(FileError),
    /// It has another format version.
    OtherFormat {
        /// Its folder.
        path: PathBuf,
        /// Its format version.
        format: u32,
    },
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        if error.is_outage() { Self::Unreadable(error) } else { Self::Damaged(error) }
    }
}

impl From<Fault> for RunError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(error) => Self::of_run_file(error),
            Fault::Unreadable(error) => Self::Unreadable(error),
            Fault::OtherFormat { path, format } => Self::OtherFormat { path, format },
        }
    }
}

/// The number of attempts to read a file: about eleven seconds in total, longer than a file server takes to fail over, but
/// not too long to wait for an error about missing permissions.
const ATTEMPTS: usize = 7;

/// Retries a read with increasing waits while the system fails.
pub(super) fn retry_transient<T>(read: impl Fn() -> Result<T, Fault>) -> Result<T, Fault> {
    for wait in BackOff::default().take(ATTEMPTS) {
        match read() {
            Err(Fault::Unreadable(_)) => thread::sleep(wait),
            done => return done,
        }
    }
    read()
}

/// Reads a file and verifies that it is exactly what was written.
pub(super) fn read_written(folder: &ConfinedPath, written: &Written) -> Result<Vec<u8>, FileError> {
    let path = folder.join(&written.name);
    check_length(&path, open(&path)?.1, written)?;
    let bytes = read(&path, written.length)?;
    check_length(&path, bytes.len() as u64, written)?;
    check_hash(&path, blake3::hash(&bytes), written)?;
    Ok(bytes)
}

/// Verifies that a file is exactly what was written, in constant memory.
pub(super) fn verify(folder: &ConfinedPath, written: &Written) -> Result<(), FileError> {
    /// Long enough for the hash to use full vector width, short enough for the CPU cache.
    const CHUNK_BYTES: usize = 256 << 10;
    let path = folder.join(&written.name);
    let (mut file, length) = open(&path)?;
    check_length(&path, length, written)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => _ = hasher.update(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(FileError::new(path, error).at(format!("byte {}", hasher.count())));
            }
        }
    }
    check_length(&path, hasher.count(), written)?;
    check_hash(&path, hasher.finalize(), written)
}

fn check_length(path: &Path, length: u64, written: &Written) -> Result<(), FileError> {
    if length == written.length {
        return Ok(());
    }
    let problem = format!("{length} bytes, but {} were written", written.length);
    let place = format!("byte {}", length.min(written.length));
    Err(FileError::new(path, FileProblem::Changed(problem)).at(place))
}

fn check_hash(path: &Path, hash: blake3::Hash, written: &Written) -> Result<(), FileError> {
    if hash.to_hex().as_str() == written.blake3 {
        return Ok(());
    }
    let problem = format!("not the {} bytes that were written: their hash differs", written.length);
    Err(FileError::new(path, FileProblem::Changed(problem)))
}
