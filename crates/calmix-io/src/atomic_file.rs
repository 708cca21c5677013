//! Writes files atomically: a file is complete or absent, even after a power failure.
//!
//! A file is written under a scratch name in the same folder, synchronised and renamed, and then the folder is synchronised.
//! Renaming before synchronising, as many programs do, can leave an empty file after a power failure. The crate `tempfile`
//! does not synchronise the folder, and a test cannot make its calls fail.
//!
//! A killed process leaves its scratch file behind. A file is locked (`flock`) while it is written, and the lock ends with
//! the process, so [`sweep_abandoned`] can detect abandoned files without a clock.

use std::fs::{self, File, TryLockError};
use std::io;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::confined_path::ConfinedPath;
use crate::disk::{Disk, RealDisk, retry_transient};
use crate::error::FileError;
use crate::system::{self, Access};

/// The separator between the final name and the unique suffix of a scratch name.
const SCRATCH: &str = ".tmp-";

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Returns the unique suffix of a scratch name: the process id and a counter, since a clock may stand still.
pub(crate) fn nonce() -> String {
    format!("{}-{}", process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

/// Returns whether a text is the unique suffix of a scratch name of ours.
pub(crate) fn is_nonce(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-').is_some_and(|(process, serial)| is_number(process) && is_number(serial))
}

/// Returns a unique name beside `path`. It is hidden, so that programs that read all files of a folder, such as pyarrow,
/// skip it.
pub fn scratch(path: &ConfinedPath) -> ConfinedPath {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!("{SCRATCH}{}", nonce()));
    path.with_file_name(name)
}

/// Returns the final name for a scratch name; `None` if it is not a scratch name of ours.
pub fn final_name(name: &str) -> Option<&str> {
    let (name, nonce) = name.strip_prefix('.')?.rsplit_once(SCRATCH)?;
    is_nonce(nonce).then_some(name)
}

/// Creates a file or folder under a scratch name. A name left by a dead process with the same id is skipped.
pub fn make<T>(
    path: &ConfinedPath,
    make: impl Fn(&ConfinedPath) -> io::Result<T>,
) -> Result<(T, ConfinedPath), FileError> {
    loop {
        let scratch = scratch(path);
        match make(&scratch) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(FileError::new(scratch, error)),
            Ok(made) => return Ok((made, scratch)),
        }
    }
}

/// Writes `bytes` to `path`: a reader, even after a power failure, finds either the old content or all of the new. A link at
/// `path` is replaced, not followed.
///
/// # Errors
/// If it cannot be written; temporary failures of the storage are retried.
pub fn write(path: impl Into<ConfinedPath>, bytes: &[u8]) -> Result<(), FileError> {
    write_on(&RealDisk, path, bytes)
}

/// Writes as [`write()`] does, on the given disk.
pub fn write_on(disk: &dyn Disk, path: impl Into<ConfinedPath>, bytes: &[u8]) -> Result<(), FileError> {
    let path = path.into();
    let mut left = Vec::new();
    retry_transient(disk, || write_once(disk, &path, bytes, &mut left))?;
    for scratch in left {
        // It could not be removed while the disk was unavailable, but now the disk has recovered.
        let _ = disk.remove_file(&scratch);
    }
    Ok(())
}

/// Tries to write a file once. Adds the scratch file to `left` if it could be neither renamed nor removed.
fn write_once(
    disk: &dyn Disk,
    path: &ConfinedPath,
    bytes: &[u8],
    left: &mut Vec<ConfinedPath>,
) -> Result<(), FileError> {
    let (mut file, scratch) = create_locked(disk, path)?;
    let written = disk.write(&mut file, bytes).and_then(|()| disk.sync(&file));
    written.and_then(|()| disk.rename(&scratch, path)).map_err(|error| {
        // The first error is the one to return; a later sweep removes any scratch file that stays.
        if disk.remove_file(&scratch).is_err() {
            left.push(scratch);
        }
        FileError::new(path, error)
    })?;
    // Sweeps do not remove files with a final name, so the lock can be released.
    drop(file);
    let folder = path.folder();
    disk.sync_folder(&folder).map_err(|error| FileError::new(&folder, error))
}

/// Gives a folder its final name: a reader, even after a power failure, finds nothing or the complete folder. Its files must
/// already be synchronised.
///
/// # Errors
/// As [`fs::rename`], and if one of the folders cannot be synchronised.
pub fn rename_folder(made: impl Into<ConfinedPath>, target: impl Into<ConfinedPath>) -> io::Result<()> {
    let (made, target) = (made.into(), target.into());
    RealDisk.sync_folder(&made)?;
    RealDisk.rename(&made, &target)?;
    RealDisk.sync_folder(&target.folder())
}

/// Creates a scratch file that [`sweep_abandoned`] does not remove until it is closed.
fn create_locked(disk: &dyn Disk, path: &ConfinedPath) -> Result<(File, ConfinedPath), FileError> {
    loop {
        let (file, scratch) = make(path, |scratch| disk.create(scratch))?;
        let is_gone = || fs::symlink_metadata(&scratch).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        match system::hold_scratch(&file) {
            // A sweep came between the two calls: it is about to remove the file, or has removed it.
            Err(TryLockError::WouldBlock) => {}
            Ok(()) if is_gone() => {}
            // On a file system without locks, a sweep cannot lock anything either, and removes nothing.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok((file, scratch)),
        }
    }
}

/// Removes everything in `folder` with a scratch name that `ours` accepts. Use it only for a folder that no other process
/// writes to, such as a run whose lock the caller holds: it does not check for live writers.
///
/// # Errors
/// If the folder cannot be read or something in it cannot be removed.
pub fn sweep(disk: &dyn Disk, folder: &ConfinedPath, ours: impl Fn(&str) -> bool) -> Result<(), FileError> {
    for (name, path) in names(folder)? {
        if !final_name(&name).is_some_and(&ours) {
            continue;
        }
        let kind = fs::symlink_metadata(&path).map_err(|error| FileError::new(&path, error))?;
        let removed = if kind.is_dir() { disk.remove_folder(&path) } else { disk.remove_file(&path) };
        removed.map_err(|error| FileError::new(&path, error))?;
    }
    Ok(())
}

/// Removes abandoned scratch files in a folder as far as possible. Other processes may write to the folder at the same time,
/// on this machine or on others that share its locks.
pub fn sweep_abandoned(folder: impl Into<ConfinedPath>) {
    sweep_if(folder, |_| true);
}

/// Removes only the abandoned scratch files of one file, as [`sweep_abandoned`] does, because its folder belongs to the
/// user.
pub fn sweep_abandoned_of(path: impl Into<ConfinedPath>) {
    let path = path.into();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    sweep_if(path.folder(), |final_name| final_name == name);
}

fn sweep_if(folder: impl Into<ConfinedPath>, ours: impl Fn(&str) -> bool) {
    for (name, path) in names(folder).unwrap_or_default() {
        // Skip links: opening one would lock its target instead.
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if !final_name(&name).is_some_and(&ours) || !is_file {
            continue;
        }
        // Open for writing, because some network file systems only lock such files.
        let Ok(file) = path.open(Access::Write) else { continue };
        if file.try_lock().is_ok() {
            let _ = path.remove_file();
        }
    }
}

/// Lists the names in a folder, sorted, with their paths. Invalid UTF-8 in a name is replaced.
pub fn names(folder: impl Into<ConfinedPath>) -> Result<Vec<(String, ConfinedPath)>, FileError> {
    let folder = folder.into();
    let entries = folder.entries().map_err(|error| FileError::new(&folder, error))?;
    let mut names: Vec<_> =
        entries.iter().map(|name| (name.to_string_lossy().into_owned(), folder.join(name))).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn listed(folder: &Path) -> Vec<String> {
        names(folder).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn scratch_names_are_unique_and_known_again() {
        let path = ConfinedPath::from(Path::new("run/recipe.toml"));
        let first = scratch(&path);
        assert_ne!(first, scratch(&path));
        assert_eq!(first.parent(), path.parent());
        assert_eq!(final_name(&first.file_name().unwrap().to_string_lossy()), Some("recipe.toml"));
    }

    #[test]
    fn names_of_others_are_not_taken_for_scratch() {
        let others = [
            "recipe.toml",
            "a.tmp-1-2",
            ".a.tmp-",
            ".a.tmp-1",
            ".a.tmp-1-",
            ".a.tmp--1",
            ".a.tmp-x-1",
            ".a.tmp-1-2~",
        ];
        for name in others {
            assert_eq!(final_name(name), None, "{name}");
        }
    }

    #[test]
    fn file_is_replaced_as_a_whole_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for content in ["first", "second"] {
            write(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(listed(folder.path()), ["a"]);
        let error = write(&folder.path().join("missing").join("a"), b"x").unwrap_err();
        let name = error.path.file_name().unwrap().to_string_lossy();
        assert!(error.path.parent().unwrap().ends_with("missing") && name.starts_with(".a"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn link_is_replaced_and_the_umask_decides_who_reads() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let [other, path] = ["other", "a"].map(|name| folder.path().join(name));
        fs::write(&other, "kept").unwrap();
        symlink(&other, &path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        let mode = |path| fs::symlink_metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    /// Records the calls that make a file durable, and executes them.
    #[derive(Debug, Default)]
    struct NotingDisk(Mutex<Vec<String>>);

    impl NotingDisk {
        fn note(&self, call: &str, path: &Path) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.0
                .lock()
                .unwrap()
                .push(format!("{call} {}", final_name(&name).map_or(name.as_str(), |_| "scratch")));
        }
    }

    impl Disk for NotingDisk {
        fn sync(&self, file: &File) -> io::Result<()> {
            self.note("sync", Path::new("scratch"));
            RealDisk.sync(file)
        }

        fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> io::Result<()> {
            self.note("rename to", to);
            RealDisk.rename(from, to)
        }

        fn sync_folder(&self, path: &ConfinedPath) -> io::Result<()> {
            self.note("sync", path);
            RealDisk.sync_folder(path)
        }
    }

    #[test]
    fn file_and_folder_are_synchronised_around_the_rename() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let disk = NotingDisk::default();
        write_on(&disk, &folder.join("a"), b"x").unwrap();
        assert_eq!(*disk.0.lock().unwrap(), ["sync scratch", "rename to a", "sync folder"]);
    }

    /// A file that a live process is writing is not swept, whatever its modification time.
    #[test]
    fn only_abandoned_scratch_files_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_hours(2);
        let (living, scratch) = create_locked(&RealDisk, &(&folder.path().join("living")).into()).unwrap();
        living.set_modified(old).unwrap();
        for name in [".dead.tmp-1-0", "a.features", ".hidden"] {
            File::create(folder.path().join(name)).unwrap().set_modified(old).unwrap();
        }
        sweep_abandoned(folder.path());
        let kept = scratch.file_name().unwrap().to_string_lossy().into_owned();
        let mut expected = vec![".hidden", "a.features", &kept];
        expected.sort_unstable();
        assert_eq!(listed(folder.path()), expected);
        drop(living);
        sweep_abandoned(folder.path());
        assert_eq!(listed(folder.path()), [".hidden", "a.features"]);
    }

    #[cfg(unix)]
    #[test]
    fn link_with_a_scratch_name_is_not_swept() {
        let folder = tempfile::tempdir().unwrap();
        File::create(folder.path().join("a.features")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("a.features"), folder.path().join(".link.tmp-1-0"))
            .unwrap();
        sweep_abandoned(folder.path());
        assert_eq!(listed(folder.path()), [".link.tmp-1-0", "a.features"]);
    }

    #[test]
    fn abandoned_scratch_of_other_files_stays() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".a.json.tmp-1-0", ".a.json.tmp-1-1", ".b.json.tmp-1-0", "a.json"] {
            File::create(folder.path().join(name)).unwrap();
        }
        sweep_abandoned_of(&folder.path().join("a.json"));
        assert_eq!(listed(folder.path()), [".b.json.tmp-1-0", "a.json"]);
    }

    /// Two threads sweep while others write: all files are complete, and no scratch file remains.
    #[test]
    fn sweeps_do_not_harm_writers() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path();
        let writing = AtomicU64::new(2);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let writing = &writing;
                scope.spawn(move || {
                    let written =
                        (0..150).try_for_each(|n| write(&folder.join(format!("{writer}-{n}")), b"x"));
                    writing.fetch_sub(1, Ordering::Relaxed);
                    written.unwrap();
                });
                scope.spawn(move || {
                    while writing.load(Ordering::Relaxed) > 0 {
                        sweep_abandoned(folder);
                    }
                });
            }
        });
        sweep_abandoned(folder);
        assert_eq!(listed(folder).len(), 300);
    }
}
