//! A file that grows by whole lines, has one writer, and can be resumed after a kill.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_io::shown::shown;

use crate::error::CliError;
use crate::terminal::warn;

/// The maximum length of a line in bytes: a row with the probabilities of a million classes is shorter.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// A file that this process has locked for writing.
#[derive(Debug)]
pub(crate) struct RowFile {
    file: File,
    path: PathBuf,
}

impl RowFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::options().append(true).create_new(true).open(path);
        Self::locked(file.with_context(|| shown(path.display()))?, path)
    }

    pub(crate) fn open(path: &Path) -> Result<Self> {
        if !safe_open::exists(path) {
            return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
        }
        Self::open_or_create(path)
    }

    /// Opens a file, or creates it if it does not exist.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self> {
        // Follow no links, which could lead to any file of the user, and open no pipes, which could block forever.
        let cannot = |error: FileError| CliError::invalid(error.to_string());
        Self::locked(safe_open::open_to_write(path).map_err(cannot)?, path)
    }

    /// Takes the kernel's lock on the file, which ends with the process. A second process would write the same rows again.
    fn locked(file: File, path: &Path) -> Result<Self> {
        let place = shown(path.display());
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{place}: another `calmix predict` is writing it");
                let hint = "wait until it ends, or name another file with `--out`";
                return Err(CliError::failed(message).hint(hint).into());
            }
            Err(TryLockError::Error(error)) => warn(&format!(
                "{place}: this file system has no locks ({error}); make sure that no other `calmix predict` writes this file"
            )),
        }
        Ok(Self { file, path: path.to_owned() })
    }

    /// Returns whether nothing was written yet.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        Ok(self.file.metadata().with_context(|| shown(self.path.display()))?.len() == 0)
    }

    pub(crate) fn clear(&mut self) -> Result<()> {
        self.file.set_len(0).with_context(|| shown(self.path.display()))
    }

    /// Resumes a file that begins with `header`: passes every complete row to `each`, and cuts off an incomplete one at the end.
    pub(crate) fn resume(&mut self, header: &str, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.resume_at(header, |row| each(row).map(|()| true))
    }

    /// Resumes a file as [`resume`](Self::resume) does, but cuts off everything after the last row for which `each` returns true.
    pub(crate) fn resume_at(
        &mut self,
        header: &str,
        mut each: impl FnMut(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        let place = shown(self.path.display());
        let mut lines = BufReader::with_capacity(1 << 16, &self.file);
        let mut line = Vec::new();
        let mut read = 0;
        let mut end = 0;
        let mut is_first = true;
        loop {
            line.clear();
            let length = lines
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .with_context(|| place.clone())?;
            if length as u64 == MAX_LINE_BYTES {
                let message =
                    format!("{place}: a line of more than {MAX_LINE_BYTES} bytes, which is not a row");
                return Err(CliError::invalid(message).into());
            }
            if !line.ends_with(b"\n") {
                break;
            }
            let mut is_kept = true;
            if !is_first || header.is_empty() {
                is_kept = each(&line)?;
            } else if line != header.as_bytes() {
                let message = format!("{place}: the first line is not the header of these predictions");
                return Err(CliError::invalid(message).into());
            }
            is_first = false;
            read += length as u64;
            if is_kept {
                end = read;
            }
        }
        self.file.set_len(end).with_context(|| place.clone())?;
        self.file.seek(SeekFrom::End(0)).with_context(|| place.clone())?;
        if is_first { self.write(header) } else { Ok(()) }
    }

    /// Writes rows at once, so that a kill loses none of them.
    pub(crate) fn write(&mut self, rows: &str) -> Result<()> {
        self.file.write_all(rows.as_bytes()).with_context(|| shown(self.path.display()))
    }

    /// Flushes the file to disk, so that it survives a power failure.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_all().with_context(|| shown(self.path.display()))
    }
}
