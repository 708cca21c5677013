//! How a file appears: as a whole or not at all, also when the power fails.
//!
//! Written under a scratch name beside its place, synchronised, renamed, and the folder synchronised. Renaming
//! first and synchronising later leaves empty files after a power failure; so do most programs that "save
//! atomically".

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::FileError;

use super::disk::{Disk, patiently};

/// Between the name that something will have and what makes its scratch name unique.
const SCRATCH: &str = ".tmp-";

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A name beside `path` that no other process uses: by process and a count, since a clock may stand still.
pub(crate) fn scratch(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{SCRATCH}{}-{}", process::id(), SERIAL.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// The name that a scratch name stands in for; none if it is not a scratch name of ours.
pub(crate) fn stands_for(name: &str) -> Option<&str> {
    let (name, nonce) = name.rsplit_once(SCRATCH)?;
    let (process, serial) = nonce.split_once('-')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(process) && number(serial)).then_some(name)
}

/// Makes something with a scratch name. A name left by a dead process that had the same id is passed over.
pub(crate) fn make<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> Result<(T, PathBuf), FileError> {
    loop {
        let scratch = scratch(path);
        match make(&scratch) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(FileError::new(scratch, error)),
            Ok(made) => return Ok((made, scratch)),
        }
    }
}

/// Writes `bytes` to `path`: a reader, now or after a power failure, finds the old content or
/// all of this.
pub(crate) fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut left = Vec::new();
    patiently(disk, || write_once(disk, path, bytes, &mut left))?;
    for scratch in left {
        // The disk was away when it had to go, and is back.
        let _ = disk.remove_file(&scratch);
    }
    Ok(())
}

/// Writes a file once. Adds the scratch file to `left` where it could be neither renamed nor removed.
fn write_once(disk: &dyn Disk, path: &Path, bytes: &[u8], left: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let (mut file, scratch) = make(path, |scratch| disk.create(scratch))?;
    let written = disk.write(&mut file, bytes).and_then(|()| disk.sync(&file));
    drop::<File>(file);
    written.and_then(|()| disk.rename(&scratch, path)).map_err(|error| {
        // The error that matters is the first; what stays in the end is removed when the run is next opened.
        if disk.remove_file(&scratch).is_err() {
            left.push(scratch);
        }
        FileError::new(path, error)
    })?;
    let folder = parent(path);
    disk.sync_folder(folder).map_err(|error| FileError::new(folder, error))
}

/// The folder that `path` is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what dead processes left in `folder` under scratch names for which `ours` holds. Only the process
/// that holds the run's lock may call it: scratch files of a living process look the same.
pub(crate) fn sweep(disk: &dyn Disk, folder: &Path, ours: impl Fn(&str) -> bool) -> Result<(), FileError> {
    for (name, path) in names(folder)? {
        if !stands_for(&name).is_some_and(&ours) {
            continue;
        }
        let kind = fs::symlink_metadata(&path).map_err(|error| FileError::new(&path, error))?;
        let removed = if kind.is_dir() { disk.remove_folder(&path) } else { disk.remove_file(&path) };
        removed.map_err(|error| FileError::new(&path, error))?;
    }
    Ok(())
}

/// The names in a folder, sorted, with their paths. Names that are not text are nothing of ours.
pub(crate) fn names(folder: &Path) -> Result<Vec<(String, PathBuf)>, FileError> {
    let cannot = |error| FileError::new(folder, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        names.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_names_are_unique_and_known_again() {
        let path = Path::new("run/recipe.toml");
        let (a, b) = (scratch(path), scratch(path));
        assert_ne!(a, b);
        assert_eq!(a.parent(), path.parent());
        assert_eq!(stands_for(&a.file_name().unwrap().to_string_lossy()), Some("recipe.toml"));
    }

    #[test]
    fn names_of_others_are_not_taken_for_scratch() {
        for name in ["recipe.toml", "a.tmp-", "a.tmp-1", "a.tmp-1-", "a.tmp--1", "a.tmp-x-1", "a.tmp-1-2~"] {
            assert_eq!(stands_for(name), None, "{name}");
        }
    }
}
