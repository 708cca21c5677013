//! The folder that an export is written to: all of it or nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix_io::atomic_file;
use calmix_io::shown::shown;

use crate::error::CliError;

/// Refuses a place where there is something already.
///
/// # Errors
/// If the folder exists.
pub fn check(folder: &Path) -> Result<(), CliError> {
    if fs::symlink_metadata(folder).is_ok() {
        let message = format!("{}: exists already", shown(folder.display()));
        return Err(CliError::invalid(message).hint("name a new folder with --to, or remove this one"));
    }
    Ok(())
}

/// Writes files into a new folder; their names may contain one folder. The folder appears with its last file.
///
/// # Errors
/// If the folder exists by now, or the disk is full.
pub fn write(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    check(folder)?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = || shown(folder.display());
    fs::create_dir_all(parent).with_context(|| format!("{}: cannot be created", place()))?;
    // Its destructor removes it if a write fails.
    let mut made = tempfile::Builder::new();
    // `tempfile` creates private folders; an export follows the user's umask.
    made.prefix(".calmix-export-").permissions(fs::Permissions::from_mode(0o777));
    let made = made.tempdir_in(parent);
    let made = made.with_context(|| format!("{}: cannot be created", place()))?;
    for (name, bytes) in files {
        let path = made.path().join(name);
        if let Some(inner) = path.parent() {
            fs::create_dir_all(inner).with_context(|| format!("{}: cannot be created", place()))?;
        }
        atomic_file::write(path.as_path(), bytes)?;
    }
    check(folder)?;
    atomic_file::rename_folder(made.path(), folder)
        .with_context(|| format!("{}: cannot be created", place()))?;
    // It has another name now.
    let _ = made.keep();
    Ok(())
}
