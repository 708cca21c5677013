//! The calls that change a disk, in one place, so that a test can make any one of them fail.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What a run does to a disk. Reading is not here: what is read is checked, wherever it comes from.
///
/// The provided methods are the real ones; [`RealDisk`] adds nothing. Tests implement a disk that is full, that
/// fails to synchronise, or that stops as if the process had been killed.
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder where nothing stands.
    ///
    /// # Errors
    /// As [`fs::create_dir`].
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    /// Makes a file where nothing stands.
    ///
    /// # Errors
    /// As [`File::create_new`].
    fn create(&self, path: &Path) -> io::Result<File> {
        File::create_new(path)
    }

    /// Writes all of `bytes` at the file's position.
    ///
    /// # Errors
    /// As [`Write::write_all`]; some of the bytes may have been written.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Cuts a file to `length` bytes.
    ///
    /// # Errors
    /// As [`File::set_len`].
    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    /// Returns when the bytes of a file are on the disk.
    ///
    /// # Errors
    /// As [`File::sync_all`]. Afterwards nobody knows what the disk holds, and asking again does not help: the
    /// system may have dropped the bytes and forgotten that it did. The file has to be written anew.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Returns when the names in a folder are on the disk.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Elsewhere a folder cannot be opened as a file; what replaces this there is up to the file system.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }

    /// Gives a file or folder another name.
    ///
    /// # Errors
    /// As [`fs::rename`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As [`fs::remove_file`].
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Removes a folder and what is in it. Links are removed, never followed.
    ///
    /// # Errors
    /// As [`fs::remove_dir_all`].
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }
}

/// The disk as the system offers it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {}
