//! The folder of a sweep: runs that any number of workers train, on one machine or on several that share it.
//!
//! | name | what it is |
//! |---|---|
//! | `runs/NAME/` | the run of a cell |
//! | `claims/NAME.lock` | which worker has the cell: a lock of the kernel's, which ends with the worker |
//! | `failed/NAME.json` | why a cell failed, until it is tried again |
//! | `summary.json`, `summary.csv` | the results, once no cell is left |

use std::fs;
use std::path::{Path, PathBuf};

use calmix_io::atomic_file;
use serde::{Deserialize, Serialize};

use crate::error::{FileError, FileProblem};
use crate::read;
use crate::run::{Lock, RunError};
use crate::safe_open;

/// Bytes of the longest record of a failure.
const LONGEST: u64 = 64 << 10;

/// The folder of a sweep.
#[derive(Debug, Clone)]
pub struct SweepFolder {
    folder: PathBuf,
}

/// The right to train a cell, until it is dropped or the process ends.
#[derive(Debug)]
pub struct CellClaim {
    _lock: Lock,
}

/// How far a cell is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellState {
    /// It has to be trained, or trained on.
    Open,
    /// Its run has a result.
    Finished,
    /// It failed, for this reason.
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct FailureRecord {
    error: String,
}

impl SweepFolder {
    /// Makes the folder, unless it is there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: impl Into<PathBuf>) -> Result<Self, FileError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|error| FileError::new(&folder, error))?;
        for name in ["runs", "claims", "failed"] {
            safe_open::make_folder(&folder.join(name))?;
        }
        Ok(Self { folder })
    }

    /// The folder of all runs.
    pub fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// The run of a cell.
    pub fn run(&self, cell: &str) -> PathBuf {
        self.runs().join(cell)
    }

    /// Claims a cell, unless another worker has it.
    ///
    /// # Errors
    /// If the file system has no locks, or the file cannot be written.
    pub fn claim(&self, cell: &str) -> Result<Option<CellClaim>, RunError> {
        match Lock::take(&self.folder.join("claims").join(format!("{cell}.lock"))) {
            Ok(lock) => Ok(Some(CellClaim { _lock: lock })),
            Err(RunError::Locked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How far a cell is.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub fn state(&self, cell: &str) -> Result<CellState, FileError> {
        let run = self.run(cell);
        if read::has_begun(&run) && read::result(&run)?.is_some() {
            return Ok(CellState::Finished);
        }
        let path = self.failure(cell);
        if !safe_open::exists(&path) {
            return Ok(CellState::Open);
        }
        let record: FailureRecord = serde_json::from_slice(&safe_open::read(&path, LONGEST)?)
            .map_err(|error| FileError::new(&path, FileProblem::Format(error.to_string())))?;
        Ok(CellState::Failed(record.error))
    }

    /// Records why a cell failed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record_failure(&self, cell: &str, error: &str) -> Result<(), FileError> {
        let path = self.failure(cell);
        let record = serde_json::to_vec(&FailureRecord { error: error.to_owned() });
        let record = record.map_err(|error| FileError::new(&path, std::io::Error::from(error)))?;
        atomic_file::write(&path, &record)
    }

    /// Forgets that a cell failed.
    ///
    /// # Errors
    /// If the record cannot be removed.
    pub fn forget_failure(&self, cell: &str) -> Result<(), FileError> {
        let path = self.failure(cell);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(FileError::new(path, error)),
            _ => Ok(()),
        }
    }

    /// Writes the results; several workers may write the same.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_summary(&self, json: &[u8], csv: &[u8]) -> Result<[PathBuf; 2], FileError> {
        let paths = ["summary.csv", "summary.json"].map(|name| self.folder.join(name));
        for (path, bytes) in paths.iter().zip([csv, json]) {
            atomic_file::write(path, bytes)?;
        }
        Ok(paths)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    fn failure(&self, cell: &str) -> PathBuf {
        self.folder.join("failed").join(format!("{cell}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_claimed_once_and_a_failure_is_kept_until_it_is_forgotten() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path().join("sweep")).unwrap();
        let claim = sweep.claim("a").unwrap().unwrap();
        assert!(sweep.claim("a").unwrap().is_none());
        assert!(sweep.claim("b").unwrap().is_some());
        drop(claim);
        assert!(sweep.claim("a").unwrap().is_some());

        assert_eq!(sweep.state("a").unwrap(), CellState::Open);
        sweep.record_failure("a", "no \"images\"").unwrap();
        assert_eq!(sweep.state("a").unwrap(), CellState::Failed("no \"images\"".to_owned()));
        sweep.forget_failure("a").unwrap();
        sweep.forget_failure("a").unwrap();
        assert_eq!(sweep.state("a").unwrap(), CellState::Open);
    }
}
