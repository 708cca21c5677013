//! The folder of an export, which appears complete or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use calmix_io::atomic_file;
use calmix_io::error::{ErrorKind, FileError};
use calmix_io::safe_open;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;

use crate::error::CliError;

/// The name of the graph.
pub(crate) const MODEL: &str = "model.onnx";

/// The files of an export: their names, which may contain one folder, and their contents.
pub(crate) type Files = Vec<(PathBuf, Vec<u8>)>;

/// The prefix of the scratch folder to which an export is written first.
const SCRATCH_PREFIX: &str = ".calmix-export-";
/// The hint for a destination that cannot be written to.
const OTHER_FOLDER_HINT: &str = "name a folder that you can write to with --to";

/// Refuses a destination that exists, or whose parent is not a folder.
pub(crate) fn check(folder: &Path) -> Result<(), CliError> {
    if fs::symlink_metadata(folder).is_ok() {
        let message = format!("{}: exists already", shown(folder.display()));
        return Err(CliError::invalid(message).hint("name a new folder with --to, or remove this one"));
    }
    let parent = parent(folder);
    if parent.exists() && !parent.is_dir() {
        let message = format!("{}: cannot write here: not a folder", shown(parent.display()));
        return Err(CliError::invalid(message).hint(OTHER_FOLDER_HINT));
    }
    Ok(())
}

/// Writes files into a new folder, which appears with its last file.
///
/// # Errors
/// If the folder exists by now, or nothing can be written there.
pub(crate) fn write(folder: &Path, files: &Files) -> Result<()> {
    check(folder)?;
    let parent = parent(folder);
    safe_open::create_folders(parent).map_err(|error| cannot_write(FileError::new(parent, error)))?;
    let scratch = ScratchFolder::new(parent, SCRATCH_PREFIX).map_err(cannot_write)?;
    // Scratch folders are private; an export follows the user's umask.
    let new_folder = scratch.path().join("export");
    for (name, bytes) in files {
        let path = new_folder.join(name);
        if let Some(inner) = path.parent() {
            fs::create_dir_all(inner).map_err(|error| FileError::new(inner, error))?;
        }
        atomic_file::write(path.as_path(), bytes)?;
    }
    check(folder)?;
    atomic_file::rename_folder(&new_folder, folder)
        .with_context(|| format!("{}: cannot be created", shown(folder.display())))?;
    Ok(())
}

/// Returns the error for a destination that cannot be written to. A full disk is still a failure, not a mistake.
fn cannot_write(error: FileError) -> Error {
    if error.kind() != ErrorKind::Mistake {
        return error.into();
    }
    let message = format!("{}: cannot write here: {}", shown(error.path.display()), error.problem);
    CliError::invalid(message).hint(OTHER_FOLDER_HINT).into()
}

/// Returns the parent folder of a path.
fn parent(folder: &Path) -> &Path {
    folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
