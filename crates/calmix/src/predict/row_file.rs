//! A file that grows by whole lines, and goes on after a kill.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix::core::shown::shown;
use calmix::run::error::FileError;
use calmix::run::safe_open;

use crate::error::CliError;

/// Bytes of the longest line: a row with the probabilities of a million classes has fewer.
const LONGEST: u64 = 16 << 20;

/// A file, at its end.
#[derive(Debug)]
pub(crate) struct RowFile {
    file: File,
    path: PathBuf,
}

impl RowFile {
    /// Makes a new file; `header` is its first line.
    pub(crate) fn create(path: &Path, header: &str) -> Result<Self> {
        let file = File::options().append(true).create_new(true).open(path);
        let mut created = Self { file: file.with_context(|| shown(path.display()))?, path: path.to_owned() };
        created.write(header)?;
        Ok(created)
    }

    /// Goes on with a file that begins with `header`: hands every whole row to `each`, and cuts off a torn one at the end.
    pub(crate) fn resume(
        path: &Path,
        header: &str,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Self> {
        let place = shown(path.display());
        // A link could lead to any file of the user's, and a pipe would be waited for without end.
        let cannot = |error: FileError| CliError::invalid(error.to_string());
        if !safe_open::exists(path) {
            return Err(CliError::invalid(format!("{place}: does not exist")).into());
        }
        let mut file = safe_open::open_to_write(path).map_err(cannot)?;
        let mut lines = BufReader::with_capacity(1 << 16, &file);
        let (mut line, mut end) = (Vec::new(), 0);
        let mut is_first = true;
        loop {
            line.clear();
            let length =
                lines.by_ref().take(LONGEST).read_until(b'\n', &mut line).with_context(|| place.clone())?;
            if length as u64 == LONGEST {
                let message = format!("{place}: a line of more than {LONGEST} bytes, which is no row");
                return Err(CliError::invalid(message).into());
            }
            if !line.ends_with(b"\n") {
                break;
            }
            if !is_first || header.is_empty() {
                each(&line)?;
            } else if line != header.as_bytes() {
                let message = format!("{place}: its first line is not that of these predictions");
                return Err(CliError::invalid(message).into());
            }
            (is_first, end) = (false, end + length as u64);
        }
        file.set_len(end).with_context(|| place.clone())?;
        file.seek(SeekFrom::End(0)).with_context(|| place.clone())?;
        let mut resumed = Self { file, path: path.to_owned() };
        if is_first {
            resumed.write(header)?;
        }
        Ok(resumed)
    }

    /// Writes rows at once, so that a kill loses none of them.
    pub(crate) fn write(&mut self, rows: &str) -> Result<()> {
        self.file.write_all(rows.as_bytes()).with_context(|| shown(self.path.display()))
    }

    /// What is written survives a failure of the power, too.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_all().with_context(|| shown(self.path.display()))
    }
}
