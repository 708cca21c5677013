//! A folder for work in progress, whose content is moved to its final place when it is complete.
//!
//! A killed process leaves its folder behind. The folder contains a [lock file](crate::lock), whose lock ends with the
//! process, so [`sweep_abandoned`] can detect abandoned folders without a clock. A lock on the folder itself would not work:
//! network file systems lock files across machines, but folders only within each machine.

use std::fs;
use std::io;
use std::path::Path;

use crate::atomic_file::{is_nonce, names, nonce};
use crate::confined_path::ConfinedPath;
use crate::error::{FileError, FileProblem};
use crate::lock::Lock;
use crate::safe_open;
use crate::system;

/// The lock file in a scratch folder. It is created first and removed last, so a folder with other files and without a lock
/// file is not ours.
const LOCK: &str = ".calmix-scratch";

/// A private folder that is removed with all its content when it is dropped. Complete content is moved out of it first.
#[derive(Debug)]
pub struct ScratchFolder {
    path: ConfinedPath,
    /// `None` on a file system without locks, where [`sweep_abandoned`] removes nothing.
    lock: Option<Lock>,
}

impl ScratchFolder {
    /// Creates a folder in `parent` with the prefix `prefix`, after removing abandoned ones.
    ///
    /// # Errors
    /// If nothing can be written to `parent`, which the error names.
    pub fn new(parent: &Path, prefix: &str) -> Result<Self, FileError> {
        sweep_abandoned(parent, prefix);
        let root = ConfinedPath::root(parent);
        loop {
            let path = root.join(format!("{prefix}{}", nonce()));
            match path.create_private_folder() {
                // Left by a dead process with the same id, perhaps on another machine.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(|error| FileError::new(parent, error))?,
            }
            let file = path.join(LOCK);
            let lock = match Lock::take(&file) {
                Ok(lock) if lock.is_of(&file) => Some(lock),
                // A sweep came between the two calls: it is about to remove the folder, or has removed it.
                Ok(_) => continue,
                Err(error) if is_swept(&error) => continue,
                Err(FileError { problem: FileProblem::NoLocks(_), .. }) => None,
                Err(error) => {
                    let _ = path.remove_empty_folder();
                    return Err(FileError::new(parent, error.problem));
                }
            };
            return Ok(Self { path, lock });
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all its content, which may fail while a thread still writes there. Links are removed, never followed.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        match self.lock.take() {
            Some(lock) => remove_locked(&self.path, lock),
            None => drop(self.remove()),
        }
    }
}

/// Removes the abandoned scratch folders in `parent` with the prefix `prefix`, as far as possible. Other processes may use
/// theirs at the same time, on this machine or on others.
pub fn sweep_abandoned(parent: &Path, prefix: &str) {
    for (name, path) in names(ConfinedPath::root(parent)).unwrap_or_default() {
        if !name.strip_prefix(prefix).is_some_and(is_nonce) || !is_own_folder(&path) {
            continue;
        }
        let file = path.join(LOCK);
        if safe_open::exists(&file) {
            if let Ok(lock) = Lock::take(&file) {
                remove_locked(&path, lock);
            }
        } else {
            // Its process was killed before it created the lock file or after it removed it. Removal fails, as it should,
            // unless the folder is empty.
            let _ = path.remove_empty_folder();
        }
    }
}

/// Returns whether a sweep has removed the lock file, or holds its lock.
fn is_swept(error: &FileError) -> bool {
    match &error.problem {
        FileProblem::Held(_) => true,
        FileProblem::Io(error) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Returns whether a path is a folder of this user, and not a link to one.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && system::owner(&found) == system::user())
}

/// Removes a scratch folder as far as possible, and then its lock. What stays is swept later.
fn remove_locked(folder: &ConfinedPath, lock: Lock) {
    if remove(folder).is_err() {
        // Some systems keep the name of a removed file until it is closed.
        drop(lock);
        let _ = remove(folder);
    }
}

/// Removes a scratch folder, with its lock file last: a process killed in between leaves a folder that is still recognised
/// as ours.
fn remove(folder: &ConfinedPath) -> io::Result<()> {
    for name in folder.entries()? {
        if name != LOCK {
            folder.join(name).remove_anything()?;
        }
    }
    match folder.join(LOCK).remove_file() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => folder.remove_empty_folder(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const PREFIX: &str = ".making-";

    fn listed(folder: &Path) -> Vec<String> {
        names(ConfinedPath::root(folder)).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    /// Creates what a killed process leaves behind: everything but its lock.
    fn abandoned(parent: &Path) -> String {
        let scratch = ScratchFolder::new(parent, PREFIX).unwrap();
        let folder = scratch.path().to_owned();
        // A locked file cannot be read on Windows.
        let text = fs::read(folder.join(LOCK)).unwrap_or_default();
        drop(scratch);
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(folder.join("inner/file"), "x").unwrap();
        fs::write(folder.join(LOCK), text).unwrap();
        folder.file_name().unwrap().to_string_lossy().into_owned()
    }

    #[test]
    fn only_abandoned_folders_are_swept() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path();
        let living = ScratchFolder::new(parent, PREFIX).unwrap();
        fs::write(living.path().join("file"), "x").unwrap();
        let name = living.path().file_name().unwrap().to_string_lossy().into_owned();
        abandoned(parent);
        // Killed before it created the lock file.
        fs::create_dir(parent.join(".making-1-7")).unwrap();
        sweep_abandoned(parent, PREFIX);
        assert_eq!(listed(parent), [name]);
        assert_eq!(fs::read(living.path().join("file")).unwrap(), b"x");
        drop(living);
        assert_eq!(listed(parent), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn folders_of_others_and_links_stay() {
        use std::os::unix::fs::symlink;

        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path();
        // A folder of the user with a matching name, another kind of entry, and another prefix.
        for folder in [".making-1-2", ".making-notes", ".other-1-2", ".making-1-2x"] {
            fs::create_dir(parent.join(folder)).unwrap();
            fs::write(parent.join(folder).join("file"), "precious").unwrap();
        }
        fs::write(parent.join(".making-1-3"), "a file").unwrap();
        // A link to a folder, and an abandoned folder with links inside it and in place of its lock.
        let precious = parent.join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "precious").unwrap();
        symlink(&precious, parent.join(".making-1-4")).unwrap();
        fs::create_dir(parent.join(".making-1-5")).unwrap();
        symlink(precious.join("file"), parent.join(".making-1-5").join(LOCK)).unwrap();
        let before = listed(parent);
        let with_links = abandoned(parent);
        symlink(&precious, parent.join(&with_links).join("link")).unwrap();
        sweep_abandoned(parent, PREFIX);
        assert_eq!(listed(parent), before);
        assert_eq!(fs::read(precious.join("file")).unwrap(), b"precious");
        assert_eq!(fs::read(parent.join(".making-1-2/file")).unwrap(), b"precious");
    }

    /// If each machine has its own locks, the text of the lock shows that a process may be alive.
    #[test]
    fn folder_of_another_machine_stays() {
        let temp = tempfile::tempdir().unwrap();
        let name = abandoned(temp.path());
        let lock = temp.path().join(&name).join(LOCK);
        let text = "process 1 on elsewhere\nboot another\n";
        fs::write(&lock, text).unwrap();
        sweep_abandoned(temp.path(), PREFIX);
        assert_eq!(fs::read_to_string(&lock).unwrap(), text);
        fs::write(lock, "").unwrap();
        sweep_abandoned(temp.path(), PREFIX);
        assert_eq!(listed(temp.path()), [""; 0]);
    }

    #[test]
    fn missing_parent_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let missing = temp.path().join("missing");
        let error = ScratchFolder::new(&missing, PREFIX).unwrap_err();
        assert_eq!(error.path, missing);
        assert_eq!(error.kind(), crate::error::ErrorKind::Mistake);
    }

    /// Two threads sweep while others use folders: all files arrive, and no folder remains.
    #[test]
    fn sweeps_do_not_harm_living_folders() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path();
        let writing = AtomicU64::new(2);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let writing = &writing;
                scope.spawn(move || {
                    let written = (0..100).try_for_each(|n| -> io::Result<()> {
                        let scratch = ScratchFolder::new(parent, PREFIX).map_err(io::Error::other)?;
                        let file = scratch.path().join("file");
                        fs::write(&file, "x")?;
                        fs::rename(file, parent.join(format!("{writer}-{n}")))
                    });
                    writing.fetch_sub(1, Ordering::Relaxed);
                    written.unwrap();
                });
                scope.spawn(move || {
                    while writing.load(Ordering::Relaxed) > 0 {
                        sweep_abandoned(parent, PREFIX);
                    }
                });
            }
        });
        assert_eq!(listed(parent).len(), 200);
    }
}
