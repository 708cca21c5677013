//! The calls that change a disk, in one place, so that a test can make any one of them fail.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::confined_path::ConfinedPath;
use crate::error::FileError;
use crate::transient::BackOff;

/// What calmix does to a disk. Reading is not here: what is read is checked, wherever it comes from. No call follows a link
/// below the folder that its path must not leave.
///
/// The provided methods are the real ones; [`RealDisk`] adds nothing. Tests implement a disk that is full, that
/// fails to synchronise, or that stops as if the process had been killed.
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder where nothing stands.
    ///
    /// # Errors
    /// As [`std::fs::create_dir`].
    fn create_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        path.create_folder()
    }

    /// Makes a file where nothing stands.
    ///
    /// # Errors
    /// As [`File::create_new`].
    fn create(&self, path: &ConfinedPath) -> io::Result<File> {
        path.open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
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
    /// As [`File::sync_all`]. After an error the content of the disk is unknown, and a second call does not help: the
    /// system may have dropped the bytes and forgotten that it did. The file has to be written anew.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Returns when the names in a folder are on the disk.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    fn sync_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        path.open(OFlags::RDONLY | OFlags::DIRECTORY)?.sync_all()
    }

    /// Gives a file or folder another name.
    ///
    /// # Errors
    /// As [`std::fs::rename`].
    fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> io::Result<()> {
        from.rename(to)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As [`std::fs::remove_file`].
    fn remove_file(&self, path: &ConfinedPath) -> io::Result<()> {
        path.remove_file()
    }

    /// Removes a folder and what is in it. Links are removed, never followed.
    ///
    /// # Errors
    /// As [`std::fs::remove_dir_all`].
    fn remove_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        path.remove_folder()
    }

    /// Waits before something that failed with `error` is tried again; `back_off` knows for how long it has been tried.
    fn wait(&self, wait: Duration, error: &FileError, back_off: &BackOff) {
        let _ = (error, back_off);
        thread::sleep(wait);
    }
}

/// The disk as the system offers it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {}

/// The disk as the system offers it, which says so when it does not answer.
#[derive(Clone)]
pub struct WarningDisk(pub Arc<dyn Fn(&str) + Send + Sync>);

impl Disk for WarningDisk {
    fn wait(&self, wait: Duration, error: &FileError, back_off: &BackOff) {
        if back_off.is_worth_a_warning(wait) {
            let longest = BackOff::LONGEST.as_secs();
            (self.0)(&format!("{error}; waiting for the storage, up to {longest} s"));
        }
        thread::sleep(wait);
    }
}

impl Debug for WarningDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WarningDisk")
    }
}

/// Does something to a disk, again and again while it fails for a reason that passes by itself: a filer that restarts
/// is away for a minute. What is done has to be the same when it is done twice.
///
/// # Errors
/// Those of `action` that do not pass, and the last one when it is time to give up.
pub fn patiently<T>(
    disk: &dyn Disk,
    mut action: impl FnMut() -> Result<T, FileError>,
) -> Result<T, FileError> {
    let mut back_off = BackOff::default();
    loop {
        let error = match action() {
            Err(error) if error.is_transient() => error,
            outcome => return outcome,
        };
        let Some(wait) = back_off.next() else { return Err(error) };
        disk.wait(wait, &error, &back_off);
    }
}
