//! The sums of an output that grows by whole lines, saved with its progress.
//!
//! `FILE.sums.jsonl` gets a line after the rows of each batch: the number of rows in the file, and the sums over them. After a
//! kill, rows that no line covers are cut and predicted again, so that a resumed output has the sums of one piece. The file is
//! removed when the sums are in `FILE.predict.json`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix_io::shown::shown;
use calmix_metrics::shift::BatchSums;
use serde::{Deserialize, Serialize};

use super::out_path::{SUMS_ENDING, beside};
use super::row::PredictedRow;
use super::row_file::RowFile;
use crate::error::CliError;

/// The sums over the first rows of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedSums {
    /// The number of rows in the output, those without a prediction included.
    pub written: u64,
    /// The sums over them.
    pub sums: BatchSums,
}

impl SavedSums {
    /// Adds a row of the output.
    pub(crate) fn add(&mut self, row: &PredictedRow<'_>) {
        self.written += 1;
        if let Some(prediction) = row.prediction {
            let observed = row.observed.cloned().unwrap_or_default();
            self.sums.add(&row.name, &observed, row.calibrated.unwrap_or(&prediction.probabilities));
        }
    }
}

/// The open journal of an output.
#[derive(Debug)]
pub(crate) struct SumsJournal {
    file: RowFile,
    path: PathBuf,
}

impl SumsJournal {
    /// Starts the journal of a new output.
    pub(crate) fn create(output: &Path) -> Result<Self> {
        let path = beside(output, SUMS_ENDING);
        let mut file = RowFile::open_or_create(&path)?;
        // It may be from an earlier output that was removed.
        file.clear()?;
        Ok(Self { file, path })
    }

    /// Opens the journal of an interrupted output, and reads its lines. `None` if there is none.
    ///
    /// # Errors
    /// If it is not a journal, or its sums are those of another model than `empty`.
    pub(crate) fn resume(output: &Path, empty: &BatchSums) -> Result<Option<(Self, Vec<SavedSums>)>> {
        let path = beside(output, SUMS_ENDING);
        if !calmix_io::safe_open::exists(&path) {
            return Ok(None);
        }
        let mut file = RowFile::open(&path)?;
        let mut lines: Vec<SavedSums> = Vec::new();
        file.resume("", |line| {
            let line: Option<SavedSums> = serde_json::from_slice(line).ok();
            let line = line.filter(|line| empty.has_shape_of(&line.sums));
            lines.push(line.ok_or_else(|| {
                let message = format!(
                    "{}: not a file of `calmix predict`, so the output cannot be resumed",
                    shown(path.display())
                );
                CliError::invalid(message).hint("predict everything again, into another file")
            })?);
            Ok(())
        })?;
        Ok(Some((Self { file, path }, lines)))
    }

    /// Adds a line; the rows must have been written.
    pub(crate) fn save(&mut self, sums: &SavedSums) -> Result<()> {
        self.file.write(&(serde_json::to_string(sums)? + "\n"))
    }

    /// Flushes the journal to disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    /// Removes the journal of a finished output.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| shown(self.path.display()))
    }
}
