//! The folder of a source, and its files read in order.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::Count;
use crate::error::{DataError, DataProblem};

/// The folder that holds a source's files.
#[derive(Debug)]
pub(crate) struct SourceDir {
    folder: PathBuf,
    /// The canonical path of the root; every file must lie below it.
    root: PathBuf,
    /// The folder relative to the root: empty, or ending in `/`.
    prefix: String,
}

impl SourceDir {
    /// `root` itself or the first folder of `inside` that holds one of `files`.
    pub(crate) fn find(root: &Path, inside: &[&str], files: &[&str]) -> Result<Self, DataError> {
        let true_root = root.canonicalize().map_err(|error| {
            DataError::new(root, error).hint("pass the folder that contains the files of the dataset")
        })?;
        for sub in std::iter::once(&"").chain(inside) {
            let folder = if sub.is_empty() { root.to_owned() } else { root.join(sub) };
            let prefix = if sub.is_empty() { String::new() } else { format!("{sub}/") };
            let dir = Self { folder, root: true_root.clone(), prefix };
            if files.iter().any(|file| dir.has(file)) {
                return Ok(dir);
            }
        }
        let (files, folders) = (files.join(", "), inside.join(", "));
        let problem = DataProblem::Content(format!("none of {files} is here or in {folders}"));
        Err(DataError::new(root, problem).hint("pass the folder that contains these files, unpacked"))
    }

    /// Whether the folder has a file of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Refuses a folder in which any of `files` is missing, and names them all.
    pub(crate) fn require(&self, files: &[&str]) -> Result<(), DataError> {
        let missing: Vec<&str> = files.iter().copied().filter(|file| !self.has(file)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let looked = files.join(", ");
        let problem = DataProblem::Content(format!("{} missing; expected {looked}", missing.join(", ")));
        Err(DataError::new(&self.folder, problem).hint("unpack the whole archive of the dataset here"))
    }

    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens a file that lies under the root.
    pub(crate) fn open(&self, name: &str) -> Result<SourceFile, DataError> {
        let path = self.path(name);
        let failed = |error: io::Error| DataError::new(&path, error);
        if !path.canonicalize().map_err(failed)?.starts_with(&self.root) {
            let problem = DataProblem::Content("a link that leads out of the dataset folder".into());
            return Err(DataError::new(&path, problem).hint("pass the folder that the link leads to"));
        }
        let found = fs::metadata(&path).map_err(failed)?;
        if !found.is_file() {
            return Err(DataError::new(&path, DataProblem::Content("not a regular file".into())));
        }
        let reader = BufReader::with_capacity(1 << 16, File::open(&path).map_err(failed)?);
        let relative = format!("{}{name}", self.prefix);
        Ok(SourceFile { length: found.len(), path, relative, position: 0, reader })
    }

    /// The whole of a short text.
    pub(crate) fn text(&self, name: &str, limit: u64) -> Result<String, DataError> {
        let opened = self.open(name)?;
        if opened.length > limit {
            let problem = DataProblem::Limit(format!("{} bytes, expected at most {limit}", opened.length));
            return Err(DataError::new(&opened.path, problem).hint("download the archive again"));
        }
        let mut text = String::new();
        // The file may grow after its length was read.
        opened.reader.take(limit).read_to_string(&mut text).map_err(|error| {
            DataError::new(&opened.path, error).hint("expected UTF-8 text; download the archive again")
        })?;
        Ok(text)
    }
}

/// A file of a source, read from its first byte to its last.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// Its path relative to the root, with `/`.
    pub(crate) relative: String,
    /// Its length in bytes.
    pub(crate) length: u64,
    /// How many of them have been read.
    pub(crate) position: u64,
    /// The bytes that follow.
    pub(crate) reader: BufReader<File>,
}

impl SourceFile {
    /// The next bytes, as many as `into` holds.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<(), DataError> {
        self.reader.read_exact(into).map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    DataProblem::Changed("the file became shorter while it was read".into())
                }
                _ => DataProblem::Io(error),
            };
            DataError::new(&self.path, problem).at(format!("byte {}", self.position))
        })?;
        self.position += into.len() as u64;
        Ok(())
    }

    /// How many records of `record` bytes the file holds: `official`, or any whole number above zero.
    pub(crate) fn records(&self, record: u64, count: Count, official: u64) -> Result<u64, DataError> {
        let length = self.length;
        let problem = match count {
            Count::Official if length == record * official => return Ok(official),
            Count::Any if length > 0 && length.is_multiple_of(record) => return Ok(length / record),
            Count::Official => {
                format!(
                    "expected {} bytes ({official} samples of {record}), found {length}",
                    record * official
                )
            }
            Count::Any => format!("expected a multiple of {record} bytes above zero, found {length}"),
        };
        let hint = "download the archive again and unpack all of it";
        Err(DataError::new(&self.path, DataProblem::Format(problem)).hint(hint))
    }

    /// A label at the last byte read, if it is a class.
    pub(crate) fn label(&self, label: u8, lowest: u8, classes: usize) -> Result<u32, DataError> {
        match label.checked_sub(lowest) {
            Some(class) if usize::from(class) < classes => Ok(u32::from(class)),
            _ => {
                let highest = usize::from(lowest) + classes - 1;
                let problem = DataProblem::Content(format!("label {label}, expected {lowest} to {highest}"));
                let place = format!("byte {}", self.position.saturating_sub(1));
                let hint = "check that the file belongs to this dataset, or download the archive again";
                Err(DataError::new(&self.path, problem).at(place).hint(hint))
            }
        }
    }
}
