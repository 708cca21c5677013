//! One process at a time in a run.
//!
//! The lock is the kernel's (`flock`, by the standard library's `File::try_lock`): it ends with the process, however that
//! ends, so there is nothing to clean up after a kill and no age to guess. The text of the file names the process that
//! holds it, for error messages. The file stays when the lock is given back, since removing it would let two processes lock
//! two files of one name.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process;

use calmix_io::confined_path::ConfinedPath;
use rustix::io::Errno;
use rustix::system::uname;

use crate::error::FileError;
#[cfg(target_os = "linux")]
use crate::safe_open;
use crate::safe_open::open_to_write;

use super::{Paths, RunError};

/// Bytes of the longest text that is read from a lock.
const LONGEST: u64 = 256;

/// The right to write into a run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock in the file `path`, or returns at once with the name of its holder.
    pub(crate) fn take(path: impl Into<ConfinedPath>) -> Result<Self, RunError> {
        let path = &path.into();
        let cannot = |error| FileError::new(path, error);
        let mut file = open_to_write(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RunError::Locked { path: path.to_path_buf(), holder: holder(file) });
            }
            Err(TryLockError::Error(error)) => return Err(refused(path, error)),
        }
        // In place, against the rule for all other files: renaming a new file here would leave the lock behind.
        file.set_len(0).map_err(cannot)?;
        file.write_all(format!("process {} on {}\n", process::id(), host()).as_bytes()).map_err(cannot)?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child between its fork and its exec has it open, too.
        let _ = self.file.unlock();
    }
}

/// Whether a process of this machine has the run, as the kernel lists its locks: asking takes none. On systems without
/// such a list no run is known to be written.
pub(crate) fn is_written_here(paths: &Paths) -> bool {
    is_listed(paths).unwrap_or(false)
}

#[cfg(target_os = "linux")]
fn is_listed(paths: &Paths) -> Option<bool> {
    use std::os::unix::fs::MetadataExt;
    let file = safe_open::open(paths.lock()).ok()?.0;
    let inode = file.metadata().ok()?.ino().to_string();
    let holder = holder(file);
    let holder = holder.strip_prefix("process ")?.split(' ').next()?;
    // `1: FLOCK  ADVISORY  WRITE 4711 08:01:5678 0 EOF`; the device is left out, since some file systems have several.
    let held = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next() == Some("FLOCK")
            && fields.nth(2) == Some(holder)
            && fields.next().and_then(|place| place.rsplit(':').next()) == Some(&*inode)
    };
    Some(fs::read_to_string("/proc/locks").ok()?.lines().any(held))
}

#[cfg(not(target_os = "linux"))]
fn is_listed(_: &Paths) -> Option<bool> {
    None
}

/// Why a lock that nobody holds cannot be had. There is no fallback: a file that says who writes outlives a killed
/// process, and on a network file system two processes can both find it missing.
fn refused(path: &Path, error: io::Error) -> RunError {
    if let Some(number) = Errno::from_io_error(&error)
        && [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::NOSYS].contains(&number)
    {
        return RunError::NoLocks { path: path.to_owned(), source: error };
    }
    if error.kind() == io::ErrorKind::Unsupported {
        return RunError::NoLocks { path: path.to_owned(), source: error };
    }
    FileError::new(path, error).into()
}

/// What the holder wrote, if it could be read: it may be about to write it.
fn holder(file: File) -> String {
    let mut text = Vec::new();
    // On some systems a locked file cannot be read; the refusal stands without the name.
    let _ = file.take(LONGEST).read_to_end(&mut text);
    let text: String = String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { "another process".to_owned() } else { text }
}

/// The name of this machine.
fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_named_with_what_to_do() {
        let sentence = |number: Errno| {
            refused(Path::new("run/calmix.lock"), io::Error::from_raw_os_error(number.raw_os_error()))
                .to_string()
        };
        for number in [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS] {
            let sentence = sentence(number);
            assert!(
                sentence.starts_with("run/calmix.lock: this file system offers no locks ("),
                "{sentence}"
            );
            assert!(sentence.contains("; put the run folder on another one"), "{sentence}");
        }
        assert!(!sentence(Errno::IO).contains("no locks"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_tells_who_writes() {
        let temp = tempfile::tempdir().unwrap();
        let paths = Paths::new(temp.path());
        assert!(!is_written_here(&paths));
        let lock = Lock::take(paths.lock()).unwrap();
        assert!(is_written_here(&paths));
        drop(lock);
        assert!(!is_written_here(&paths));
    }

    #[test]
    fn a_lock_that_was_given_back_is_free_although_a_child_inherited_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lock");
        let lock = Lock::take(&path).unwrap();
        // What a fork does: another handle of the same open file.
        let inherited = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(&path), Err(RunError::Locked { .. })));
        drop(lock);
        Lock::take(&path).unwrap();
        drop(inherited);
    }
}
