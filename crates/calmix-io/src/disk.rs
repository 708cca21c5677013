//! A trait for all calls that change a disk, so that a test can make any of them fail.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::confined_path::ConfinedPath;
use crate::error::FileError;
use crate::system::Access;
use crate::transient::BackOff;

/// The operations that change a disk. Reading is not included, because everything that is read is checked anyway. No
/// operation follows a link below the folder that confines its path.
///
/// The default methods perform the real operations; [`RealDisk`] adds nothing. Tests implement disks that are full, fail to
/// synchronise, or stop as if the process had been killed.
pub trait Disk: Debug + Send + Sync {
    /// Creates a folder; fails if the name is taken.
    fn create_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        path.create_folder()
    }

    /// Creates a file; fails if the name is taken.
    fn create(&self, path: &ConfinedPath) -> io::Result<File> {
        path.open(Access::New)
    }

    /// Writes all of `bytes` at the file's position.
    ///
    /// # Errors
    /// As [`Write::write_all`]; some of the bytes may have been written.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Truncates a file to `length` bytes.
    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    /// Synchronises a file: returns when its bytes are on disk.
    ///
    /// # Errors
    /// As [`File::sync_all`]. After an error the content of the disk is unknown, and a second call does not help: the
    /// system may have dropped the bytes without keeping a record of it. The file must be written again.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Synchronises a folder: returns when its entries are on disk.
    fn sync_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        path.sync_folder()
    }

    /// Renames a file or folder.
    fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> io::Result<()> {
        from.rename(to)
    }

    /// Removes a file.
    fn remove_file(&self, path: &ConfinedPath) -> io::Result<()> {
        path.remove_file()
    }

    /// Removes a folder and its contents. Links are removed, never followed.
    fn remove_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        path.remove_folder()
    }

    /// Waits before retrying an operation that failed with `error`; `back_off` tracks the total waiting time.
    fn wait(&self, wait: Duration, error: &FileError, back_off: &BackOff) {
        let _ = (error, back_off);
        thread::sleep(wait);
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {}

/// The real disk, with a warning when it is unavailable.
#[derive(Clone)]
pub struct WarningDisk(pub Arc<dyn Fn(&str) + Send + Sync>);

impl Disk for WarningDisk {
    fn wait(&self, wait: Duration, error: &FileError, back_off: &BackOff) {
        if back_off.should_warn(wait) {
            let longest = BackOff::MAX_TOTAL_WAIT.as_secs();
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

/// Retries an operation on a disk while it fails for a temporary reason, such as a file server that restarts, which takes
/// about a minute. The operation must be idempotent.
///
/// # Errors
/// Those of `action` that are not temporary, and its last error after [`BackOff::MAX_TOTAL_WAIT`].
pub fn retry_transient<T>(
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
