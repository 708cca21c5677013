//! Opens files in a run's folder or a cache. Every reader and writer of a run goes through here.
//!
//! A run may come from an untrusted source, so links in its folder are never followed: a link could lead to any file of the
//! user, reading a pipe could block forever, and a device never ends. Files must be regular files, folders must be real
//! folders, and a file is read only up to a limit set by its reader. The folder of the run itself may be reached through
//! links, since the user gave that path. Below it, files are opened relative to handles ([`ConfinedPath`]), so that a link
//! is not followed even if it replaces a folder in the meantime.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path};

use crate::confined_path::ConfinedPath;
use crate::error::FileError;
use crate::system::{self, Access};

/// The hint for a link or a device in place of a file or folder.
const REPLACE_LINK_HINT: &str =
    "check that you trust its source, then replace it with a copy of the original";

/// Opens a regular file for reading; returns it with its length in bytes.
///
/// # Errors
/// If it is a link, a folder, a pipe or a device, is nearly all holes, or cannot be opened.
pub fn open(path: impl Into<ConfinedPath>) -> Result<(File, u64), FileError> {
    opened(&path.into(), Access::Read).map(|(file, metadata)| (file, metadata.len()))
}

/// Opens a regular file that belongs to this user or to root.
///
/// # Errors
/// As [`open`], and if it belongs to another user.
pub fn open_owned(path: impl Into<ConfinedPath>) -> Result<(File, u64), FileError> {
    let path = path.into();
    let (file, metadata) = opened(&path, Access::Read)?;
    check_owner(&path, &metadata)?;
    Ok((file, metadata.len()))
}

/// Reads a regular file of at most `longest` bytes.
///
/// # Errors
/// As [`open`], and if it is longer.
pub fn read(path: impl Into<ConfinedPath>, longest: u64) -> Result<Vec<u8>, FileError> {
    let path = path.into();
    read_opened(&path, open(&path)?, longest)
}

/// Reads a file as [`read`] does, if it belongs to this user or to root.
pub fn read_owned(path: impl Into<ConfinedPath>, longest: u64) -> Result<Vec<u8>, FileError> {
    let path = path.into();
    read_opened(&path, open_owned(&path)?, longest)
}

fn read_opened(path: &Path, (file, length): (File, u64), longest: u64) -> Result<Vec<u8>, FileError> {
    if length > longest {
        return Err(FileError::limit(path, format!("{length} bytes, more than {longest}")));
    }
    let mut bytes = Vec::new();
    let cannot = |error| FileError::new(path, error);
    bytes.try_reserve_exact(length as usize).map_err(|error| cannot(error.into()))?;
    // If the file grows in the meantime, only its first `length` bytes are read.
    file.take(length).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

/// Reads a text file as [`read`] does.
///
/// # Errors
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: impl Into<ConfinedPath>, longest: u64) -> Result<String, FileError> {
    let path = path.into();
    String::from_utf8(read(&path, longest)?).map_err(|error| FileError::format(&path, error.to_string()))
}

/// Opens a regular file for reading and writing in place; creates it if it is missing.
///
/// # Errors
/// As [`open`], and if the file has a second hard link, whose content would change too.
pub fn open_to_write(path: impl Into<ConfinedPath>) -> Result<File, FileError> {
    let path = path.into();
    let (file, _) = opened(&path, Access::ReadWrite)?;
    check_single_link(&path, &file)?;
    Ok(file)
}

/// Opens a regular file for appending; creates it if it is missing.
pub fn append(path: impl Into<ConfinedPath>) -> Result<File, FileError> {
    let path = path.into();
    let (file, _) = opened(&path, Access::Append)?;
    check_single_link(&path, &file)?;
    Ok(file)
}

/// Returns whether the name exists, even as a broken link, which is refused when it is opened.
pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Checks that a folder is a real one.
///
/// # Errors
/// If it is a link, not a folder, or missing.
pub fn check_folder(path: &Path) -> Result<(), FileError> {
    let found = fs::symlink_metadata(path).map_err(|error| FileError::new(path, error))?;
    if found.is_dir() { Ok(()) } else { Err(wrong_type_error(path, &found, "folder")) }
}

/// Checks that a folder is a real one and belongs to this user or to root.
///
/// # Errors
/// As [`check_folder`], and if it belongs to another user.
pub fn check_owned_folder(path: &Path) -> Result<(), FileError> {
    check_folder(path)?;
    let found = fs::symlink_metadata(path).map_err(|error| FileError::new(path, error))?;
    check_owner(path, &found)
}

/// Creates a folder, unless it exists.
///
/// # Errors
/// As [`check_folder`], and if it cannot be created.
pub fn create_folder_if_missing(path: impl Into<ConfinedPath>) -> Result<(), FileError> {
    let path = path.into();
    match path.create_folder() {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_folder(&path),
        Err(error) => Err(FileError::new(&path, error)),
    }
}

/// Creates a folder that the user named, and those above it, unless they exist.
///
/// # Errors
/// If the system does not allow one of the names, or a folder cannot be created.
pub fn create_folders(path: &Path) -> io::Result<()> {
    check_names(path)?;
    fs::create_dir_all(path)
}

/// Checks that the system allows all names of a path that is about to be created.
///
/// # Errors
/// On Windows, if a name means a device or would be changed.
pub fn check_names(path: &Path) -> io::Result<()> {
    path.components().try_for_each(|part| match part {
        Component::Normal(name) => system::check_name(name),
        _ => Ok(()),
    })
}

fn opened(path: &ConfinedPath, access: Access) -> Result<(File, Metadata), FileError> {
    let cannot = |error| FileError::new(path, error);
    // Check before opening, since opening a device may already have an effect.
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Err(wrong_type_error(path, &found, "file")),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
        _ => {}
    }
    let file = path.open(access).map_err(|error| open_error(path, error))?;
    // Check the opened file again: the name may refer to another file by now.
    let found = file.metadata().map_err(cannot)?;
    if !found.is_file() {
        return Err(wrong_type_error(path, &found, "file"));
    }
    if let Some(problem) = hollow_problem(&file, &found) {
        return Err(FileError::limit(path, problem));
    }
    Ok((file, found))
}

/// Returns the error for a path that cannot be opened, with a clear message if one of its folders is a link.
fn open_error(path: &Path, error: io::Error) -> FileError {
    if !system::is_link_refused(&error) {
        return FileError::new(path, error);
    }
    let problem = "there is a symbolic link in its path, where calmix expects plain folders".to_owned();
    FileError::content(path, problem).hint(REPLACE_LINK_HINT)
}

/// Checks that a file to be written in place has no other hard link.
fn check_single_link(path: &Path, file: &File) -> Result<(), FileError> {
    if system::link_count(file).map_err(|error| FileError::new(path, error))? <= 1 {
        return Ok(());
    }
    let problem = "this is a hard link, so writing to it would also change the other file";
    Err(FileError::content(path, problem).hint("replace it with a copy of the file"))
}

/// Returns whether a file or folder belongs to a user other than this one and root.
pub fn is_foreign(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| is_owned_by_another(&found))
}

fn is_owned_by_another(found: &Metadata) -> bool {
    system::owner(found).is_some_and(|owner| ![system::user(), Some(0)].contains(&Some(owner)))
}

/// Checks that a file or folder belongs to this user or root.
fn check_owner(path: &Path, found: &Metadata) -> Result<(), FileError> {
    if !is_owned_by_another(found) {
        return Ok(());
    }
    Err(FileError::content(path, "it belongs to another user, who could change it"))
}

fn wrong_type_error(path: &Path, found: &Metadata, wanted: &str) -> FileError {
    let kind = found.file_type();
    let what = if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_file() {
        "a file"
    } else {
        "a pipe, a socket or a device"
    };
    let problem = format!("this is {what}, but calmix expects a plain {wanted}");
    FileError::content(path, problem).hint(REPLACE_LINK_HINT)
}

/// The size in bytes from which a file is checked; reading a smaller one is harmless.
const MIN_CHECKED_BYTES: u64 = 16 << 20;

/// A file with content takes up at least 1/1,024 of its length on disk, even on a compressing file system.
const MAX_COMPRESSION_RATIO: u64 = 1_024;

/// Returns the problem if an open file with these metadata is nearly all holes.
pub fn hollow_problem(file: &File, found: &Metadata) -> Option<String> {
    let begins_with_zeros = || {
        let mut start = [0; 4_096];
        system::read_exact_at(file, &mut start, 0).is_ok() && start.iter().all(|&byte| byte == 0)
    };
    let stored = system::stored_bytes(found);
    let is_hollow = is_hollow_by_size(found.len(), stored, begins_with_zeros);
    is_hollow.then(|| format!("a sparse file: {} bytes, nearly all of them holes", found.len()))
}

/// Decides by size. Some network file systems report no stored bytes at all; for these, the start of the file decides.
fn is_hollow_by_size(length: u64, stored: u64, begins_with_zeros: impl FnOnce() -> bool) -> bool {
    length >= MIN_CHECKED_BYTES
        && stored.saturating_mul(MAX_COMPRESSION_RATIO) < length
        && (stored > 0 || begins_with_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FileProblem;

    /// Creates one entry of every kind that is not a regular file, and returns their names; the last is a broken link.
    #[cfg(unix)]
    fn zoo(folder: &Path) -> Vec<&'static str> {
        use std::os::unix::fs::symlink;
        use std::os::unix::net::UnixListener;
        use std::process::Command;

        fs::write(folder.join("sentinel"), "precious").unwrap();
        fs::create_dir(folder.join("folder")).unwrap();
        symlink("sentinel", folder.join("link")).unwrap();
        symlink("folder", folder.join("link to a folder")).unwrap();
        symlink("/dev/zero", folder.join("link to a device")).unwrap();
        symlink("made", folder.join("link to nothing")).unwrap();
        drop(UnixListener::bind(folder.join("socket")).unwrap());
        assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
        vec!["folder", "link", "link to a folder", "link to a device", "socket", "pipe", "link to nothing"]
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened_and_only_real_folders_listed() {
        let temp = tempfile::tempdir().unwrap();
        for name in zoo(temp.path()) {
            let path = temp.path().join(name);
            assert!(exists(&path), "{name}");
            for opened in [open(&path).map(drop), open_to_write(&path).map(drop), append(&path).map(drop)] {
                let error = opened.unwrap_err();
                assert!(matches!(error.problem, FileProblem::Content(_)), "{error}");
                assert!(error.to_string().contains(name) && error.hint.is_some(), "{error}");
            }
            assert_eq!(check_folder(&path).is_ok(), name == "folder", "{name}");
            assert_eq!(create_folder_if_missing(&path).is_ok(), name == "folder", "{name}");
        }
        assert_eq!(fs::read_to_string(temp.path().join("sentinel")).unwrap(), "precious");
        assert!(!temp.path().join("made").exists(), "made through a link");
    }

    #[test]
    fn hard_link_is_read_but_not_written() {
        let temp = tempfile::tempdir().unwrap();
        let (one, two) = (temp.path().join("one"), temp.path().join("two"));
        fs::write(&one, "precious").unwrap();
        fs::hard_link(&one, &two).unwrap();
        assert_eq!(read(&two, 8).unwrap(), b"precious");
        assert!(open_to_write(&two).unwrap_err().to_string().contains("hard link"));
        assert!(append(&two).unwrap_err().to_string().contains("hard link"));
    }

    #[test]
    fn read_refuses_long_files_and_wrong_text() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        fs::write(&path, "12345678").unwrap();
        assert_eq!(read_text(&path, 8).unwrap(), "12345678");
        assert!(matches!(read(&path, 7).unwrap_err().problem, FileProblem::Limit(_)));
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read_text(&path, 8).unwrap_err().problem, FileProblem::Format(_)));
    }

    /// On Windows a file has holes only if its program asked for them.
    #[cfg(unix)]
    #[test]
    fn sparse_files_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        File::create(&path).unwrap();
        // A terabyte of holes, which would take an hour to hash, and 20 MiB, which would take memory.
        for length in [1 << 40, 20 << 20] {
            File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
            assert!(open(&path).unwrap_err().to_string().contains("holes"), "{length}");
        }
        // Smaller sparse files are read.
        File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
        assert!(open(&path).is_ok());
    }

    #[test]
    fn sparse_files_differ_from_uncounted_blocks() {
        let length = 1 << 30;
        let mib = 1 << 20;
        assert!(is_hollow_by_size(length, 4_096, || false));
        assert!(!is_hollow_by_size(length, mib, || true) && !is_hollow_by_size(mib, 0, || true));
        // No stored bytes: either only holes, or a file system that does not report them.
        assert!(is_hollow_by_size(length, 0, || true) && !is_hollow_by_size(length, 0, || false));
    }
}
