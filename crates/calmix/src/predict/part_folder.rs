//! A folder of Parquet files, `part-00000.parquet` and so on. Each appears when it is complete.
//!
//! `FOLDER.parts.jsonl` beside it has one line per part: its rows, its hash, and the path of its last row. A kill can leave a
//! part without a line; it is written again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix_data::cloud::RemoteOutput;
use calmix_data::error::DataError;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, RealDisk};
use calmix_io::shown::shown;
use calmix_io::{atomic_file, safe_open};
use calmix_metrics::shift::BatchSums;
use calmix_run::model_info::ModelInfo;
use serde::{Deserialize, Serialize};

use super::out_path::beside;
use super::parquet::ParquetRows;
use super::row::{PredictedRow, RowFormat, WrittenRows};
use super::row_file::RowFile;
use crate::error::CliError;

/// The size at which a part ends, however few rows it has: it is in memory until it is written.
const PART_BYTES: usize = 256 << 20;

/// The folder, and the rows of its next part.
#[derive(Debug)]
pub(crate) struct PartFolder {
    folder: PathBuf,
    lines: RowFile,
    /// The number of complete parts.
    parts: usize,
    next: ParquetRows,
    rows: u64,
    last: String,
    /// The object storage of the parts; `None` if the folder itself is the output.
    remote: Option<RemoteOutput>,
    /// The first part of this process. A killed process may have stored a part without its line.
    first: usize,
}

/// A line of the list, about one complete part.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartLine {
    part: usize,
    rows: u64,
    bytes: u64,
    blake3: String,
    /// The path in the last row of the part.
    last: String,
    /// The sums over all rows up to the last one of the part, if they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sums: Option<BatchSums>,
}

impl PartFolder {
    /// Returns the path of the list beside a folder. The process that has it open is the only one that writes to the folder.
    pub(crate) fn list(folder: &Path) -> PathBuf {
        beside(folder, ".parts.jsonl")
    }

    /// Creates a folder; `lines` is its list.
    pub(crate) fn create(folder: &Path, mut lines: RowFile, format: &RowFormat<'_>) -> Result<Self> {
        // The list may be from an earlier folder that was removed.
        lines.clear()?;
        // Synchronise the folder as the parts will be: otherwise, after a power failure, the list could name parts of a folder
        // that does not exist.
        let place = ConfinedPath::from(folder);
        let created = RealDisk.create_folder(&place).and_then(|()| RealDisk.sync_folder(&place.folder()));
        created.with_context(|| shown(folder.display()))?;
        Self::new(folder, lines, 0, format)
    }

    /// Continues after the last complete part; `lines` is the list of the folder. Also returns the sums over its rows, if they were
    /// kept.
    pub(crate) fn resume(
        folder: &Path,
        mut lines: RowFile,
        format: &RowFormat<'_>,
    ) -> Result<(Self, WrittenRows, Option<BatchSums>)> {
        let list = Self::list(folder);
        let mut written = WrittenRows::default();
        let mut parts = 0;
        let mut sums = None;
        lines.resume("", |line| {
            let line: PartLine = serde_json::from_slice(line)
                .ok()
                .filter(|line: &PartLine| line.part == parts)
                .ok_or_else(|| damaged(&list, "not a file of `calmix predict`"))?;
            check(&folder.join(part_name(parts)), &line)?;
            written.rows = written.rows.saturating_add(line.rows);
            if line.rows > 0 {
                written.last = format.beginning(&line.last);
            }
            sums = line.sums;
            parts += 1;
            Ok(())
        })?;
        // Remove incomplete parts and a part without its line, which a kill left. No other process writes here.
        atomic_file::sweep_abandoned(folder);
        let _ = fs::remove_file(folder.join(part_name(parts)));
        Ok((Self::new(folder, lines, parts, format)?, written, sums))
    }

    fn new(folder: &Path, lines: RowFile, parts: usize, format: &RowFormat<'_>) -> Result<Self> {
        let folder = folder.to_owned();
        let next = ParquetRows::new(format)?;
        Ok(Self { folder, lines, parts, next, rows: 0, last: String::new(), remote: None, first: parts })
    }

    /// Stores all further parts in object storage.
    pub(crate) fn store_in(&mut self, remote: RemoteOutput) {
        self.remote = Some(remote);
    }

    /// Adds a row; writes the part if it is full. `sums` are those over all rows up to this one, if they are kept.
    pub(crate) fn add(
        &mut self,
        format: &RowFormat<'_>,
        row: &PredictedRow<'_>,
        sums: Option<&BatchSums>,
    ) -> Result<()> {
        self.next.add(row)?;
        self.rows += 1;
        row.name.clone_into(&mut self.last);
        let is_full = self.rows >= format.rows_of_part || self.next.bytes() >= PART_BYTES;
        if is_full { self.end_part(format, sums) } else { Ok(()) }
    }

    /// Writes the last part. A folder without rows gets an empty one, which has the columns.
    pub(crate) fn finish(&mut self, format: &RowFormat<'_>, sums: Option<&BatchSums>) -> Result<()> {
        if self.rows > 0 || self.parts == 0 {
            self.end_part(format, sums)?;
        }
        Ok(())
    }

    /// Returns the object storage of the parts, if they are stored in one.
    pub(crate) fn remote(&self) -> Option<&RemoteOutput> {
        self.remote.as_ref()
    }

    fn end_part(&mut self, format: &RowFormat<'_>, sums: Option<&BatchSums>) -> Result<()> {
        let bytes = std::mem::replace(&mut self.next, ParquetRows::new(format)?).finish()?;
        let path = self.folder.join(part_name(self.parts));
        atomic_file::write(&path, &bytes)?;
        let line = PartLine {
            part: self.parts,
            rows: std::mem::take(&mut self.rows),
            bytes: bytes.len() as u64,
            blake3: ModelInfo::hash(&bytes),
            last: std::mem::take(&mut self.last),
            sums: sums.cloned(),
        };
        if let Some(remote) = &self.remote {
            // Store the part before writing its line: every part with a line is stored.
            let is_first = self.parts == self.first;
            let stored = if is_first { remote.replace(&path, bytes) } else { remote.create(&path, bytes) };
            stored.map_err(DataError::from)?;
        }
        self.lines.write(&(serde_json::to_string(&line)? + "\n"))?;
        self.lines.sync()?;
        if let Some(remote) = &self.remote {
            let list = Self::list(&self.folder);
            let lines = fs::read(&list).with_context(|| shown(list.display()))?;
            remote.replace(&list, lines).map_err(DataError::from)?;
        }
        self.parts += 1;
        Ok(())
    }
}

fn part_name(part: usize) -> String {
    format!("part-{part:05}.parquet")
}

/// Checks that a part is the one in its line.
fn check(path: &Path, line: &PartLine) -> Result<()> {
    let bytes =
        safe_open::read(path, line.bytes).map_err(|error| damaged(path, &error.problem.to_string()))?;
    if ModelInfo::hash(&bytes) == line.blake3 { Ok(()) } else { Err(damaged(path, "it was changed").into()) }
}

fn damaged(path: &Path, what: &str) -> CliError {
    let hint = "remove the folder and predict everything again, or name another with `--out`";
    CliError::invalid(format!("{}: {what}, so it cannot be resumed", shown(path.display()))).hint(hint)
}
