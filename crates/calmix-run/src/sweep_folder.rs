//! The folder of a sweep, whose runs are trained by any number of workers, on one machine or on several that share it.
//!
//! | name | what it is |
//! |---|---|
//! | `runs/NAME/` | the run of a cell |
//! | `claims/NAME.lock` | which worker has the cell: a lock of the kernel's, which ends with the worker |
//! | `attempts/NAME.json` | how often a worker has begun the cell since its last checkpoint; removed when the attempt ends |
//! | `failed/NAME.json` | why a cell failed, until it is tried again |
//! | `summary.json`, `summary.csv` | the results, once no cell is left |

use std::io;
use std::path::{Path, PathBuf};

use calmix_io::atomic_file;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::RealDisk;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::lock::Lock;
use calmix_io::safe_open;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{self, remove};
use crate::error::RunError;
use crate::read;
use crate::run::Paths;

/// The maximum size of a record of a failure or attempts, in bytes.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// The folder of a sweep.
#[derive(Debug, Clone)]
pub struct SweepFolder {
    folder: PathBuf,
}

/// An exclusive right to train a cell, until it is dropped or the process ends.
#[derive(Debug)]
pub struct CellClaim {
    _lock: Lock,
}

/// The state of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellState {
    /// The cell has to be trained or resumed.
    Open,
    /// The run of the cell has a result.
    Finished,
    /// The cell failed, for this reason.
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct FailureRecord {
    error: String,
}

/// The unfinished attempts at a cell.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AttemptRecord {
    attempts: u32,
    /// The step of the newest checkpoint at the start of the last attempt.
    checkpoint: Option<u64>,
}

impl SweepFolder {
    /// Creates the folder unless it exists.
    pub fn create(folder: impl Into<PathBuf>) -> Result<Self, FileError> {
        let folder = folder.into();
        safe_open::create_folders(&folder).map_err(|error| FileError::new(&folder, error))?;
        for name in ["runs", "claims", "attempts", "failed"] {
            safe_open::create_folder_if_missing(ConfinedPath::root(&folder).join(name))?;
        }
        Ok(Self { folder })
    }

    /// Returns the folder of all runs.
    pub fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// Returns the folder of a cell's run.
    pub fn run(&self, cell: &str) -> PathBuf {
        self.runs().join(cell)
    }

    /// Claims a cell; `None` if another worker has claimed it.
    ///
    /// # Errors
    /// If the file system has no locks, or the file cannot be written.
    pub fn claim(&self, cell: &str) -> Result<Option<CellClaim>, RunError> {
        // A worker killed on another machine must not keep the cell forever.
        match Lock::take_over(&self.root().join("claims").join(format!("{cell}.lock"))) {
            Ok(lock) => Ok(Some(CellClaim { _lock: lock })),
            Err(error) if matches!(error.problem, FileProblem::Held(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the state of a cell. If its result or failure record is damaged, or its folder is a link, it has failed: other
    /// cells must not wait for it.
    pub fn state(&self, cell: &str) -> Result<CellState, FileError> {
        let run = self.run(cell);
        // A link would create the run in its target folder.
        if safe_open::exists(&run)
            && let Err(error) = safe_open::check_folder(&run)
        {
            return Ok(CellState::Failed(error.to_string()));
        }
        if read::has_begun(&run) {
            match read::result(&run) {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(CellState::Finished),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => return Ok(CellState::Failed(error.to_string())),
            }
        }
        let path = self.failure(cell);
        if !safe_open::exists(&path) {
            return Ok(CellState::Open);
        }
        let record: Result<FailureRecord, _> = safe_open::read(&path, MAX_RECORD_BYTES).and_then(|bytes| {
            serde_json::from_slice(&bytes)
                .map_err(|error| FileError::new(&path, FileProblem::Format(error.to_string())))
        });
        match record {
            Ok(record) => Ok(CellState::Failed(record.error)),
            Err(error) if error.is_transient() => Err(error),
            Err(error) => Ok(CellState::Failed(error.to_string())),
        }
    }

    /// Returns the number of unfinished attempts at a cell since its last checkpoint, in which the worker was killed or ran
    /// out of memory.
    pub fn unfinished_attempts(&self, cell: &str) -> Result<u32, FileError> {
        let record = self.attempt_record(cell)?;
        Ok(if record.checkpoint == self.newest_checkpoint(cell) { record.attempts } else { 0 })
    }

    /// Records that a worker starts a cell. Only the worker that has claimed it may call this.
    pub fn begin_attempt(&self, cell: &str) -> Result<(), FileError> {
        let attempts = self.unfinished_attempts(cell)? + 1;
        let record = AttemptRecord { attempts, checkpoint: self.newest_checkpoint(cell) };
        write_json(&self.attempt(cell), &record)
    }

    /// Records that the attempt at a cell has ended, successfully or not.
    pub fn end_attempt(&self, cell: &str) -> Result<(), FileError> {
        remove(&RealDisk, &self.attempt(cell))
    }

    fn attempt_record(&self, cell: &str) -> Result<AttemptRecord, FileError> {
        let path = self.attempt(cell);
        if !safe_open::exists(&path) {
            return Ok(AttemptRecord::default());
        }
        // This is only a count, so a damaged record restarts at zero.
        Ok(serde_json::from_slice(&safe_open::read(&path, MAX_RECORD_BYTES)?).unwrap_or_default())
    }

    fn newest_checkpoint(&self, cell: &str) -> Option<u64> {
        checkpoint::steps(Paths::new(self.run(cell)).checkpoints()).ok()?.last().copied()
    }

    /// Records why a cell failed.
    pub fn record_failure(&self, cell: &str, error: &str) -> Result<(), FileError> {
        write_json(&self.failure(cell), &FailureRecord { error: error.to_owned() })
    }

    /// Deletes the failure record of a cell.
    pub fn forget_failure(&self, cell: &str) -> Result<(), FileError> {
        remove(&RealDisk, &self.failure(cell))
    }

    /// Writes the results; several workers may write the same content.
    pub fn write_summary(&self, json: &[u8], csv: &[u8]) -> Result<[PathBuf; 2], FileError> {
        let paths = ["summary.csv", "summary.json"].map(|name| self.folder.join(name));
        for (path, bytes) in paths.iter().zip([csv, json]) {
            atomic_file::write(path, bytes)?;
        }
        Ok(paths)
    }

    /// Returns the path of the sweep folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    fn root(&self) -> ConfinedPath {
        ConfinedPath::root(&self.folder)
    }

    fn attempt(&self, cell: &str) -> ConfinedPath {
        self.root().join("attempts").join(format!("{cell}.json"))
    }

    fn failure(&self, cell: &str) -> ConfinedPath {
        self.root().join("failed").join(format!("{cell}.json"))
    }
}

fn write_json(path: &ConfinedPath, record: &impl Serialize) -> Result<(), FileError> {
    let bytes = serde_json::to_vec(record).map_err(|error| FileError::new(path, io::Error::from(error)))?;
    atomic_file::write(path, &bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run::{Run, RunFile};

    #[test]
    fn cell_is_claimed_once_and_failures_persist() {
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

    #[test]
    fn attempts_count_until_one_ends_or_a_checkpoint_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path().join("sweep")).unwrap();
        sweep.begin_attempt("a").unwrap();
        sweep.begin_attempt("a").unwrap();
        assert_eq!(
            (sweep.unfinished_attempts("a").unwrap(), sweep.unfinished_attempts("b").unwrap()),
            (2, 0)
        );
        sweep.end_attempt("a").unwrap();
        assert_eq!(sweep.unfinished_attempts("a").unwrap(), 0);

        sweep.begin_attempt("a").unwrap();
        let checkpoints = Paths::new(sweep.run("a")).checkpoints();
        fs::create_dir_all(checkpoints.join("step-000000010")).unwrap();
        assert_eq!(sweep.unfinished_attempts("a").unwrap(), 0, "it got further");
        sweep.begin_attempt("a").unwrap();
        assert_eq!(sweep.unfinished_attempts("a").unwrap(), 1);
    }

    /// If this counted as a claim by another worker, a worker would wait forever.
    #[test]
    fn claim_that_cannot_be_written_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path().join("sweep")).unwrap();
        fs::remove_dir(sweep.path().join("claims")).unwrap();
        sweep.claim("a").unwrap_err();
    }

    #[test]
    fn record_that_cannot_be_removed_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path().join("sweep")).unwrap();
        fs::create_dir(sweep.failure("a")).unwrap();
        sweep.forget_failure("a").unwrap_err();
    }

    #[test]
    fn runs_and_results_are_in_the_folder() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path()).unwrap();
        assert_eq!(sweep.run("a"), temp.path().join("runs/a"));
        let [csv, json] = sweep.write_summary(b"{}", b"a,b").unwrap();
        assert_eq!((csv, json), (temp.path().join("summary.csv"), temp.path().join("summary.json")));
        assert_eq!(fs::read_to_string(temp.path().join("summary.csv")).unwrap(), "a,b");
        assert_eq!(fs::read_to_string(temp.path().join("summary.json")).unwrap(), "{}");
    }

    #[cfg(unix)]
    #[test]
    fn cell_whose_folder_is_a_link_has_failed() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path().join("sweep")).unwrap();
        std::os::unix::fs::symlink(temp.path(), sweep.run("a")).unwrap();
        assert!(matches!(sweep.state("a").unwrap(), CellState::Failed(_)));
    }

    #[test]
    fn cell_with_a_damaged_record_has_failed() {
        let temp = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::create(temp.path().join("sweep")).unwrap();
        let run = Run::create(sweep.run("a")).unwrap();
        run.write(RunFile::Recipe, b"").unwrap();
        run.write(RunFile::Result, b"").unwrap();
        assert!(matches!(sweep.state("a").unwrap(), CellState::Failed(why) if why.contains("result.json")));
        fs::write(sweep.failure("b"), b"{").unwrap();
        assert!(matches!(sweep.state("b").unwrap(), CellState::Failed(why) if why.contains("b.json")));
    }
}
