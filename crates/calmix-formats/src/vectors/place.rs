//! The folder of a source's files.

use std::path::{Path, PathBuf};

use crate::error::FormatError;
use crate::read_at::ReadAt;

/// A folder, or one file in a folder; links are followed.
#[derive(Debug)]
pub struct VectorPlace {
    /// The canonical path of the folder.
    pub folder: PathBuf,
    /// The file in it; `None` for the folder as a whole.
    pub file: Option<String>,
}

impl VectorPlace {
    /// Finds the path that the user gave.
    ///
    /// # Errors
    /// If it does not exist, or its name is not UTF-8.
    pub fn find(path: &Path) -> Result<Self, FormatError> {
        let real = path.canonicalize().map_err(|error| FormatError::new(path, error))?;
        if real.is_dir() {
            return Ok(Self { folder: real, file: None });
        }
        let name = real.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let name =
            name.ok_or_else(|| FormatError::content(path, "its name is not UTF-8").hint("rename it"))?;
        let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self { folder, file: Some(name) })
    }

    /// Opens a file by its path relative to the folder.
    pub fn open(&self, name: &str) -> Result<ReadAt, FormatError> {
        ReadAt::open(&self.folder, name)
    }

    /// Returns whether the file has one of these extensions, in any case.
    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self.file.as_ref().and_then(|name| Path::new(name).extension());
        let extension = extension.map(|extension| extension.to_string_lossy().to_lowercase());
        extension.is_some_and(|extension| extensions.contains(&extension.as_str()))
    }
}
