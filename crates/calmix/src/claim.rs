//! The folder of a new run: made before anything is prepared into it, and taken back if nothing comes of it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use calmix::data::error::DataError;
use calmix::train::inspect;
use calmix::train::run::{Run, RunError};

/// Where runs without a name of their own are.
const RUNS: &str = "runs";

/// A folder that this process alone writes to.
#[derive(Debug)]
pub(crate) struct Claim {
    folder: PathBuf,
    run: Option<Run>,
    /// Whether this process made the folder.
    is_new: bool,
}

impl Claim {
    /// The folder that was asked for, or else the next free one of `runs/NAME-1`, `runs/NAME-2`, …
    pub(crate) fn take(asked: Option<&Path>, name: &str) -> Result<Self, RunError> {
        if let Some(folder) = asked {
            let is_new = !folder.exists();
            let run = match Run::create(folder) {
                // Killed before it began.
                Err(RunError::Exists { .. }) if !inspect::has_begun(folder) => Run::open(folder)?,
                run => run?,
            };
            return Ok(Self { folder: folder.to_owned(), run: Some(run), is_new });
        }
        let runs = Path::new(RUNS);
        fs::create_dir_all(runs).map_err(|error| DataError::new(runs, error))?;
        for number in 1_u64.. {
            let folder = runs.join(format!("{name}-{number}"));
            // Whoever makes the folder has it: two processes never get the same number.
            match fs::create_dir(&folder) {
                Ok(()) => {
                    let run = Some(Run::create(&folder)?);
                    return Ok(Self { folder, run, is_new: true });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(DataError::new(folder, error).into()),
            }
        }
        Err(RunError::NoRun { path: runs.to_owned() })
    }

    /// A folder that processes begin a run in, or go on with it where it has begun.
    pub(crate) fn again(folder: &Path) -> Result<Self, RunError> {
        if inspect::has_begun(folder) {
            return Ok(Self { folder: folder.to_owned(), run: None, is_new: false });
        }
        Self::take(Some(folder), "")
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands the folder over to whoever begins the run.
    pub(crate) fn hand_over(&mut self) {
        self.run = None;
    }
}

impl Drop for Claim {
    /// Removes a folder that this process made and in which no run began.
    fn drop(&mut self) {
        if self.is_new && !inspect::has_begun(&self.folder) {
            let _ = fs::remove_dir_all(&self.folder);
            // Ours too if it is empty; otherwise this does nothing.
            let _ = fs::remove_dir(RUNS);
        }
    }
}
