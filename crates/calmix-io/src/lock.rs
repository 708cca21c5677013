//! A lock file that lets only one process at a time write to a folder.
//!
//! The lock is the kernel's (`flock`, by the standard library's `File::try_lock`): it ends with the process, however that
//! happens, so a kill leaves nothing to clean up and no age to guess. The text of the file names the process that holds it.
//! Releasing the lock removes the text but not the file, since otherwise two processes could lock two files with the same
//! name, unless both check for this ([`Lock::take_removed_at_end`]).
//!
//! Some mounts of network file systems (`nolock`, `local_lock=all`, Lustre's `localflock`) give every machine its own locks,
//! without an error. There only the text helps: if a process on another machine wrote it and has not removed it, that
//! process may still be writing, and the lock is refused unless the caller takes it over.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process;

use crate::confined_path::ConfinedPath;
use crate::error::{FileError, FileProblem};
use crate::safe_open;
use crate::safe_open::open_to_write;
use crate::system;

/// The maximum number of bytes to read from a lock file.
const MAX_LOCK_BYTES: u64 = 256;

/// An exclusive right to write to a folder, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The path to remove with the lock, if any.
    removed_at_end: Option<ConfinedPath>,
}

impl Lock {
    /// Takes the lock in the file `path`, or fails at once with the name of its holder.
    ///
    /// # Errors
    /// If another process holds it, a process on another machine has not released it, or the file system has no locks.
    pub fn take(path: &ConfinedPath) -> Result<Self, FileError> {
        Self::take_as(path, &Machine::this(), false)
    }

    /// Takes the lock as [`take`](Self::take) does, even if a process on another machine has not released it.
    ///
    /// # Errors
    /// If another process holds it, or the file system has no locks.
    pub fn take_over(path: &ConfinedPath) -> Result<Self, FileError> {
        Self::take_as(path, &Machine::this(), true)
    }

    /// Takes the lock as [`take`](Self::take) does, and removes its file when it is dropped. Every process must then take it by this
    /// function: it checks that the file that it locked has not been removed.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_removed_at_end(path: &ConfinedPath) -> Result<Self, FileError> {
        loop {
            let mut lock = Self::take(path)?;
            if lock.is_of(path) {
                lock.removed_at_end = Some(path.clone());
                return Ok(lock);
            }
        }
    }

    /// Returns whether the locked file is still the one at `path`.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        system::is_same_file(&self.file, path)
    }

    fn take_as(path: &ConfinedPath, machine: &Machine, takes_over: bool) -> Result<Self, FileError> {
        let cannot = |error| FileError::new(path, error);
        let mut file = open_to_write(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FileError::new(path, FileProblem::Held(holder(&file))));
            }
            Err(TryLockError::Error(error)) => return Err(refused(path, error)),
        }
        let text = text(&file);
        if !takes_over && machine.is_foreign(&text) {
            return Err(FileError::new(path, FileProblem::Foreign(first_line(&text))));
        }
        file.rewind().map_err(cannot)?;
        // Written in place, unlike all other files: the lock belongs to this file and would not move to a renamed one.
        file.set_len(0).map_err(cannot)?;
        file.write_all(machine.text().as_bytes()).map_err(cannot)?;
        Ok(Self { file, removed_at_end: None })
    }
}

/// The identity of a machine in the text of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Machine {
    host: String,
    /// The id of the current boot; empty if unknown.
    boot: String,
}

impl Machine {
    /// Returns the machine that this process runs on.
    fn this() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self { host: system::host_name(), boot: boot.trim().to_owned() }
    }

    fn text(&self) -> String {
        format!("process {} on {}\nboot {}\n", process::id(), self.host, self.boot)
    }

    /// Returns whether a process on another machine wrote this text. Containers on one kernel share its locks, and no
    /// process survives a reboot. A text without a second line is from an old version, which never removed it.
    fn is_foreign(&self, text: &str) -> bool {
        let mut lines = text.lines();
        let host = lines.next().and_then(|line| line.split_once(" on "));
        let boot = lines.next().and_then(|line| line.strip_prefix("boot"));
        let (Some((_, host)), Some(boot)) = (host, boot) else { return false };
        let is_same_kernel = !self.boot.is_empty() && boot.trim() == self.boot;
        host != self.host && !is_same_kernel
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(path) = &self.removed_at_end {
            // While the lock is held, so that the file of another process is not removed.
            let _ = path.remove_file();
        }
        // An empty text marks the folder as free for machines that do not see this lock.
        let _ = self.file.set_len(0);
        // Closing the file is not enough: a child between fork and exec may still have it open.
        let _ = self.file.unlock();
    }
}

/// Returns whether a process on this machine holds the lock, without taking it, from the kernel's list of locks. Always
/// false on systems without such a list.
pub fn is_held_locally(path: &ConfinedPath) -> bool {
    let Ok((file, _)) = safe_open::open(path) else { return false };
    let holder = holder(&file);
    let process = holder.strip_prefix("process ").and_then(|holder| holder.split(' ').next());
    process.is_some_and(|process| system::is_locked_by(&file, process))
}

/// Returns the error for a lock that cannot be taken although no process holds it. There is no fallback: a file that names
/// the writer would outlive a killed process, and on a network file system two processes could both find it missing.
fn refused(path: &Path, error: io::Error) -> FileError {
    FileError::new(
        path,
        if system::has_no_locks(&error) { FileProblem::NoLocks(error) } else { FileProblem::Io(error) },
    )
}

/// Returns the process that wrote the text, which may be missing while the process is about to write it.
fn holder(file: &File) -> String {
    first_line(&text(file))
}

fn first_line(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    if line.is_empty() { "another process".to_owned() } else { line }
}

/// Reads the text of a lock; empty if it cannot be read, as for locked files on some systems.
fn text(file: &File) -> String {
    let mut text = Vec::new();
    let _ = file.take(MAX_LOCK_BYTES).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_system_without_locks_is_named() {
        use rustix::io::Errno;

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
        }
        assert!(!sentence(Errno::IO).contains("no locks"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_tells_who_writes() {
        let temp = tempfile::tempdir().unwrap();
        let path = ConfinedPath::root(temp.path()).join("lock");
        assert!(!is_held_locally(&path));
        let lock = Lock::take(&path).unwrap();
        assert!(is_held_locally(&path));
        drop(lock);
        assert!(!is_held_locally(&path));
    }

    /// If each machine has its own locks, both get the kernel's.
    #[test]
    fn lock_of_another_machine_is_taken_over_only_on_request() {
        let temp = tempfile::tempdir().unwrap();
        let path = ConfinedPath::root(temp.path()).join("lock");
        let machine = |host: &str, boot: &str| Machine { host: host.to_owned(), boot: boot.to_owned() };
        let local = machine("local", "1");
        let remote = machine("remote", "2");
        let take = |machine: &Machine, takes_over| Lock::take_as(&path, machine, takes_over);
        // Released.
        drop(take(&remote, false).unwrap());
        drop(take(&local, false).unwrap());
        // Killed, or still running.
        fs::write(&path, remote.text()).unwrap();
        let error = take(&local, false).unwrap_err();
        assert!(matches!(&error.problem, FileProblem::Foreign(_)), "{error:?}");
        let sentence = error.to_string();
        assert!(sentence.contains(&format!("process {} on remote", process::id())), "{sentence}");
        assert!(!sentence.contains("boot"), "{sentence}");
        assert_eq!(fs::read_to_string(&path).unwrap(), remote.text());
        drop(take(&local, true).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        // Killed on this machine: before a reboot, in another container, or by a version without a second line.
        for text in
            [machine("local", "0").text(), machine("other", "1").text(), "process 1 on remote\n".to_owned()]
        {
            fs::write(&path, &text).unwrap();
            drop(take(&local, false).unwrap_or_else(|error| panic!("{text}: {error}")));
        }
        fs::write(&path, remote.text()).unwrap();
        assert!(matches!(Lock::take(&path).unwrap_err().problem, FileProblem::Foreign(_)));
        drop(Lock::take_over(&path).unwrap());
    }

    /// Four threads: never do two hold the lock, and no file remains.
    #[test]
    fn removed_lock_excludes_others() {
        let temp = tempfile::tempdir().unwrap();
        let path = ConfinedPath::root(temp.path()).join("lock");
        let holders = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut taken = 0;
                    while taken < 150 {
                        let Ok(lock) = Lock::take_removed_at_end(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        taken += 1;
                        thread::sleep(Duration::from_micros(100));
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(!path.exists());
    }

    #[test]
    fn released_lock_is_free_despite_inheriting_child() {
        let temp = tempfile::tempdir().unwrap();
        let path = ConfinedPath::root(temp.path()).join("lock");
        let lock = Lock::take(&path).unwrap();
        // Like a fork: another handle of the same open file.
        let inherited = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(&path).unwrap_err().problem, FileProblem::Held(_)));
        drop(lock);
        Lock::take(&path).unwrap();
        drop(inherited);
    }
}
