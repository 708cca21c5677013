//! The folder of a new run: created before anything is prepared into it, and removed if the run does not start.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix::run::error::FileError;
use calmix::run::read;
use calmix::run::run::{RealDisk, Run, RunError};

/// The parent of run folders that the user did not name.
const RUNS: &str = "runs";

/// A run's folder, locked by this process.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    lock: Option<Run>,
    /// Whether this process created the folder.
    is_new: bool,
}

impl RunDir {
    /// Creates the folder that the user named, or else the next free one of `runs/NAME-1`, `runs/NAME-2`, … in the folder
    /// `base`.
    pub(crate) fn create(named: Option<&Path>, base: &Path, name: &str) -> Result<Self, RunError> {
        if let Some(path) = named {
            let is_new = !path.exists();
            let lock = match Run::create(path) {
                // A run was killed here before it started.
                Err(RunError::Exists { .. }) if !read::has_begun(path) => {
                    Run::take_over(path, Arc::new(RealDisk))?
                }
                lock => lock?,
            };
            return Ok(Self { path: path.to_owned(), lock: Some(lock), is_new });
        }
        let runs = base.join(RUNS);
        let cannot = |error| FileError::new(&runs, error).hint("name another place with `--run-dir`");
        fs::create_dir_all(&runs).map_err(cannot)?;
        for number in 1_u64.. {
            let path = runs.join(format!("{name}-{number}"));
            // `create_dir` succeeds in one process only: two processes never get the same number.
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = Some(Run::create(&path)?);
                    return Ok(Self { path, lock, is_new: true });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(error).into()),
            }
        }
        Err(RunError::NoRun { path: runs })
    }

    /// Creates the folder, unless a run has started there: a launcher may start the same command again.
    pub(crate) fn create_or_reuse(path: &Path) -> Result<Self, RunError> {
        if read::has_begun(path) {
            return Ok(Self { path: path.to_owned(), lock: None, is_new: false });
        }
        Self::create(Some(path), Path::new(""), "")
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Releases the lock, so that the trainer can take it.
    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }
}

impl Drop for RunDir {
    /// Removes the folder if this process created it and no run started there.
    fn drop(&mut self) {
        if !self.is_new {
            return;
        }
        // Between `unlock` and the trainer another process may have taken the run: then the folder is that one's.
        let Some(_lock) = self.lock.take().or_else(|| Run::open(&self.path).ok()) else { return };
        if !read::has_begun(&self.path) {
            let _ = fs::remove_dir_all(&self.path);
            // Fails, as it should, unless the folder is empty.
            let _ = self.path.parent().filter(|runs| runs.ends_with(RUNS)).map(fs::remove_dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_another_process_took_is_not_removed() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("run");
        let mut loser = RunDir::create(Some(&path), temp.path(), "").expect("the folder is free");
        loser.unlock();
        let winner = Run::open(&path).expect("the lock is free");
        drop(loser);
        assert!(path.is_dir(), "the winner's folder is there");
        drop(winner);

        let unused = RunDir::create(Some(&temp.path().join("unused")), temp.path(), "").expect("free");
        drop(unused);
        assert!(!temp.path().join("unused").exists(), "a run that did not start leaves nothing");
    }
}
