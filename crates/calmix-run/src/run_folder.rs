//! The folder of a new run: created and locked before anything is prepared in it, and removed if the run does not start.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_io::disk::Disk;
use calmix_io::error::FileError;
use calmix_io::safe_open;

use crate::error::RunError;
use crate::read;
use crate::run::Run;

/// The default parent of run folders.
const RUNS: &str = "runs";

/// The location of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPlace {
    /// A folder that is empty or does not exist.
    New(PathBuf),
    /// A folder that is empty, does not exist, or contains a run that has started: launchers and sweeps repeat the same
    /// command.
    NewOrBegun(PathBuf),
    /// The next free folder among `runs/NAME-1`, `runs/NAME-2`, …
    Next {
        /// The name; `None` for the name of the recipe.
        name: Option<String>,
    },
}

/// A run's folder, locked by this process unless the run has already started.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: Option<Run>,
    /// Whether this process created the folder.
    is_new: bool,
}

impl RunFolder {
    /// Claims a location. `parent` returns the folder that contains `runs/`, and `name` is the default name of the run.
    pub fn claim(
        place: &RunPlace,
        parent: impl FnOnce() -> PathBuf,
        name: &str,
        disk: Arc<dyn Disk>,
    ) -> Result<Self, RunError> {
        match place {
            RunPlace::NewOrBegun(path) if read::has_begun(path) => {
                Ok(Self { path: path.clone(), lock: None, is_new: false })
            }
            RunPlace::New(path) | RunPlace::NewOrBegun(path) => Self::create(path, disk),
            RunPlace::Next { name: own } => {
                Self::create_next(&parent().join(RUNS), own.as_deref().unwrap_or(name), disk)
            }
        }
    }

    fn create(path: &Path, disk: Arc<dyn Disk>) -> Result<Self, RunError> {
        let is_new = !path.exists();
        let lock = match Run::create_on(path, Arc::clone(&disk)) {
            // A run was killed here before it started.
            Err(RunError::Exists { .. }) if !read::has_begun(path) => Run::take_over(path, disk)?,
            lock => lock?,
        };
        Ok(Self { path: path.to_owned(), lock: Some(lock), is_new })
    }

    fn create_next(runs: &Path, name: &str, disk: Arc<dyn Disk>) -> Result<Self, RunError> {
        let cannot = |error| FileError::new(runs, error).hint("choose another folder with `--run-dir`");
        safe_open::create_folders(runs).map_err(cannot)?;
        for number in 1_u64.. {
            let path = runs.join(format!("{name}-{number}"));
            // `create_dir` succeeds in only one process, so two processes never get the same number.
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = Some(Run::create_on(&path, disk)?);
                    return Ok(Self { path, lock, is_new: true });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(error).into()),
            }
        }
        Err(RunError::NoRun { path: runs.to_owned() })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hands the lock over to the trainer; `None` if the run has already started.
    pub fn take_lock(&mut self) -> Option<Run> {
        self.lock.take()
    }
}

impl Drop for RunFolder {
    /// Removes the folder if this process created it and no run started there.
    fn drop(&mut self) {
        if !self.is_new || read::has_begun(&self.path) {
            return;
        }
        // After the trainer has released the lock, another process may have opened the run, which then owns the folder.
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
    use calmix_io::disk::RealDisk;

    use super::*;

    #[test]
    fn folder_that_another_process_took_is_not_removed() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("run");
        let mut loser = RunFolder::create(&path, Arc::new(RealDisk)).expect("the folder is free");
        drop(loser.take_lock());
        let winner = Run::open(&path).expect("the lock is free");
        drop(loser);
        assert!(path.is_dir(), "the winner's folder is there");
        drop(winner);

        let unused = RunFolder::create(&temp.path().join("unused"), Arc::new(RealDisk)).expect("free");
        drop(unused);
        assert!(!temp.path().join("unused").exists(), "a run that did not start leaves nothing");
    }
}
