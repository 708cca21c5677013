//! The folder of a published dataset, and sequential reading of its files: records, short texts, lists.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::{FormatError, FormatProblem};

/// The maximum length of a line in a list, in bytes: a path and a word or two are far shorter.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// The required number of samples in files without a header.
///
/// Without this check, a file truncated between two samples would look complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// As many as in the published dataset.
    Official,
    /// Any positive integer, for another dataset in the same format.
    Any,
}

/// The folder of a source's files.
#[derive(Debug)]
pub struct SourceDir {
    folder: PathBuf,
    /// The canonical path of the root; every file must lie below it.
    root: PathBuf,
    /// The folder relative to the root: empty, or ending in `/`.
    prefix: String,
}

impl SourceDir {
    /// Finds `root` itself, or the first folder of `inside`, that holds one of `files`.
    pub fn find(root: &Path, inside: &[&str], files: &[&str]) -> Result<Self, FormatError> {
        let true_root = root.canonicalize().map_err(|error| {
            FormatError::new(root, error).hint("pass the folder that contains the files of the dataset")
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
        let problem = format!("none of {files} is here or in {folders}");
        Err(FormatError::content(root, problem).hint("pass the folder that contains these files, unpacked"))
    }

    /// Returns whether the folder has a file with this name.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Refuses a folder without all of `files`, and names the missing ones.
    pub fn require(&self, files: &[&str]) -> Result<(), FormatError> {
        let missing: Vec<&str> = files.iter().copied().filter(|file| !self.has(file)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let looked = files.join(", ");
        let problem = format!("{} missing; expected {looked}", missing.join(", "));
        Err(FormatError::content(&self.folder, problem).hint("unpack the whole archive of the dataset here"))
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens a file below the root.
    pub fn open(&self, name: &str) -> Result<SourceFile, FormatError> {
        let path = self.path(name);
        let failed = |error: io::Error| FormatError::new(&path, error);
        if !path.canonicalize().map_err(failed)?.starts_with(&self.root) {
            let problem = "a link that leads out of the dataset folder";
            return Err(FormatError::content(&path, problem).hint("pass the folder that the link leads to"));
        }
        let found = fs::metadata(&path).map_err(failed)?;
        if !found.is_file() {
            return Err(FormatError::content(&path, "not a regular file"));
        }
        let reader = BufReader::with_capacity(1 << 16, File::open(&path).map_err(failed)?);
        let relative = format!("{}{name}", self.prefix);
        Ok(SourceFile { length: found.len(), path, relative, position: 0, reader })
    }

    /// Reads a short text.
    ///
    /// # Errors
    /// If it has more than `limit` bytes, or is not UTF-8.
    pub fn text(&self, name: &str, limit: u64) -> Result<String, FormatError> {
        let opened = self.open(name)?;
        if opened.length > limit {
            let problem = format!("{} bytes, expected at most {limit}", opened.length);
            return Err(FormatError::limit(&opened.path, problem).hint("download the archive again"));
        }
        let mut text = String::new();
        // The file may grow after its length was read.
        opened.reader.take(limit).read_to_string(&mut text).map_err(|error| {
            FormatError::new(&opened.path, error).hint("expected UTF-8 text; download the archive again")
        })?;
        Ok(text)
    }
}

/// A file of a source, read from start to end.
#[derive(Debug)]
pub struct SourceFile {
    pub path: PathBuf,
    /// Its path relative to the root, with `/`.
    pub relative: String,
    /// Its length in bytes.
    pub length: u64,
    /// The number of bytes read so far.
    pub position: u64,
    /// A reader for the remaining bytes.
    pub reader: BufReader<File>,
}

impl SourceFile {
    /// Reads the next bytes and fills `into`.
    ///
    /// # Errors
    /// If the file ends before them, or cannot be read.
    pub fn read(&mut self, into: &mut [u8]) -> Result<(), FormatError> {
        self.reader.read_exact(into).map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    FormatProblem::Changed("the file became shorter while it was read".into())
                }
                _ => FormatProblem::Io(error),
            };
            FormatError::new(&self.path, problem).at(format!("byte {}", self.position))
        })?;
        self.position += into.len() as u64;
        Ok(())
    }

    /// Returns the number of records of `record` bytes: `official`, or any positive integer.
    ///
    /// # Errors
    /// If the file has another length.
    pub fn records(&self, record: u64, count: Count, official: u64) -> Result<u64, FormatError> {
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
        Err(FormatError::format(&self.path, problem).hint(hint))
    }

    /// Converts the label byte that was read last to a class.
    ///
    /// # Errors
    /// If it is not a valid class.
    pub fn label(&self, label: u8, lowest: u8, classes: usize) -> Result<u32, FormatError> {
        match label.checked_sub(lowest) {
            Some(class) if usize::from(class) < classes => Ok(u32::from(class)),
            _ => {
                let highest = usize::from(lowest) + classes - 1;
                let problem = format!("label {label}, expected {lowest} to {highest}");
                let place = format!("byte {}", self.position.saturating_sub(1));
                let hint = "check that the file belongs to this dataset, or download the archive again";
                Err(FormatError::content(&self.path, problem).at(place).hint(hint))
            }
        }
    }
}

/// Calls `visit` with the number and text of every non-blank line of a list, without byte order mark and line end.
///
/// # Errors
/// If the list cannot be read, a line is too long or not UTF-8, and the errors of `visit`.
pub fn for_each_line<E: From<FormatError>>(
    path: &Path,
    mut visit: impl FnMut(u64, &str) -> Result<(), E>,
) -> Result<(), E> {
    let file = File::open(path).map_err(|error| FormatError::new(path, error))?;
    let mut reader = BufReader::new(file);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes);
        if read.map_err(|error| FormatError::new(path, error))? == 0 {
            break;
        }
        let at = |problem| FormatError::new(path, problem).at(format!("line {number}"));
        if bytes.len() as u64 == MAX_LINE_BYTES {
            return Err(at(FormatProblem::Limit("the line is longer than 64 KiB".into())).into());
        }
        let text = str::from_utf8(&bytes).map_err(|_| at(FormatProblem::Format("not UTF-8".into())))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(text).trim();
        if !text.is_empty() {
            visit(number, text)?;
        }
    }
    Ok(())
}
