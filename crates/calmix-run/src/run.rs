//! A run is a folder with everything needed to repeat, evaluate and resume it.
//!
//! | name | what it is |
//! |---|---|
//! | `run.json` | that this is a run, and in which format |
//! | `recipe.toml` | the recipe with every default written out |
//! | `environment.json` | versions, commit, features, device, fingerprint of the dataset, hash of the split ([`RunEnvironment`]) |
//! | `split.json` | which samples kept their labels |
//! | `events.jsonl` | the events, one per line ([`Journal`]) |
//! | `timing.jsonl`, `tensorboard/` | the pace, and everything for TensorBoard: files that depend on the clock |
//! | `predictions/` | the predictions of each evaluation |
//! | `checkpoints/` | where to continue from ([`crate::checkpoint`]) |
//! | `model.safetensors`, `model.json`, `result.json` | the resulting model, what it is, its temperature and its metrics, at the end |
//! | `backbone.safetensors` or `backbone.onnx`, `projection.safetensors` | backbone and projection, if the model is a head on frozen features |
//! | `prepared/` | the prepared dataset, unless it was prepared elsewhere |
//! | `calmix.lock` | the process that writes here |
//!
//! Every file except the journal, the lock and clock-dependent files appears completely or not at all. A folder with any
//! other content is refused, and a run deletes only files that it created. Only one process at a time may hold a [`Run`];
//! reading needs only [`Paths`].
//!
//! ```
//! use calmix_run::error::RunError;
//! use calmix_run::run::{Mark, Paths, Run, RunFile};
//!
//! # let temp = tempfile::tempdir()?;
//! # let folder = &temp.path().join("first");
//! let run = Run::create(folder)?;
//! run.write(RunFile::Recipe, b"seed = 1\n")?;
//! let mut journal = run.journal(&Mark::start())?;
//! journal.append(r#"{"step":1,"loss":2.3}"#)?;
//!
//! assert!(matches!(Run::open(folder), Err(RunError::Locked { .. })));
//! drop((run, journal));
//! assert!(matches!(Run::create(folder), Err(RunError::Exists { .. })));
//! let run = Run::open(folder)?;
//! assert_eq!(std::fs::read(Paths::new(folder).file(RunFile::Recipe)?)?, b"seed = 1\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod environment;
mod journal;
mod paths;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_io::atomic_file;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::lock::Lock;
use calmix_io::safe_open;
use serde::{Deserialize, Serialize};

use crate::error::RunError;

use calmix_io::disk::{Disk, RealDisk};
pub use environment::{Build, RunEnvironment};
pub use journal::{Journal, Mark};
pub(crate) use paths::is_plain;
pub use paths::{Paths, RunFile};

use crate::checkpoint::{Checkpoints, is_step, restore_replaced};

/// The format version of run folders that this version of calmix writes and reads.
pub const FORMAT: u32 = 3;

/// The maximum size of `run.json`, in bytes.
const MAX_MARKER_BYTES: u64 = 4_096;

/// The content of `run.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: u32,
}

/// A run to which only this process writes.
#[derive(Debug)]
pub struct Run {
    paths: Paths,
    lock: Arc<Lock>,
    disk: Arc<dyn Disk>,
}

impl Run {
    /// Starts a run in a folder that is empty or does not exist.
    pub fn create(folder: impl Into<PathBuf>) -> Result<Self, RunError> {
        Self::create_on(folder, Arc::new(RealDisk))
    }

    /// Opens a run to continue it, removing incomplete files of killed processes.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, RunError> {
        Self::open_on(folder, Arc::new(RealDisk))
    }

    /// Starts a run as [`create`](Self::create) does, on the given [`Disk`].
    pub fn create_on(folder: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Result<Self, RunError> {
        let paths = Paths::new(folder);
        let folder = paths.folder();
        safe_open::create_folders(folder).map_err(|error| FileError::new(folder, error))?;
        refuse_content(&paths)?;
        // A run that never started has nothing to lose.
        let lock = Lock::take_over(&paths.lock())?;
        // Checked again, now that no other process can write.
        refuse_content(&paths)?;
        let run = Self { paths, lock: Arc::new(lock), disk };
        run.sweep()?;
        for folder in [run.paths.checkpoints(), run.paths.predictions()] {
            match run.disk.create_folder(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(FileError::new(folder, error).into());
                }
                _ => safe_open::check_folder(&folder)?,
            }
        }
        // Written last, so that a folder with a marker is complete.
        let marker = serde_json::to_vec(&Marker { format: FORMAT }).map_err(io::Error::from);
        let marker = marker.map_err(|error| FileError::new(run.paths.marker(), error))?;
        atomic_file::write_on(&*run.disk, run.paths.marker(), &marker)?;
        let parent = ConfinedPath::from(run.paths.folder()).folder();
        run.disk.sync_folder(&parent).map_err(|error| FileError::new(&parent, error))?;
        Ok(run)
    }

    /// Opens a run as [`open`](Self::open) does, on the given [`Disk`].
    pub fn open_on(folder: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Result<Self, RunError> {
        Self::open_with(folder, disk, Lock::take)
    }

    /// Opens a run as [`open_on`](Self::open_on) does, even if a process on another machine has not closed it. The caller
    /// must know that this process has ended.
    pub fn take_over(folder: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Result<Self, RunError> {
        Self::open_with(folder, disk, Lock::take_over)
    }

    fn open_with(
        folder: impl Into<PathBuf>,
        disk: Arc<dyn Disk>,
        take: impl FnOnce(&ConfinedPath) -> Result<Lock, FileError>,
    ) -> Result<Self, RunError> {
        let paths = Paths::new(folder);
        check_marker(&paths)?;
        let lock = Arc::new(take(&paths.lock())?);
        let run = Self { paths, lock, disk };
        run.sweep()?;
        Ok(run)
    }

    /// Returns the paths of its files.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Copies an immutable file into the run, by a hard link if the file system supports it.
    pub fn share(&self, file: RunFile<'_>, from: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.paths.file(file)?;
        if !safe_open::exists(&path) && path.hard_link(from).is_ok() {
            return Ok(());
        }
        self.write(file, bytes)
    }

    /// Writes a file atomically: a reader finds either the old content or the new.
    pub fn write(&self, file: RunFile<'_>, bytes: &[u8]) -> Result<(), FileError> {
        if let RunFile::Predictions(_) = file {
            safe_open::check_folder(&self.paths.predictions())?;
        }
        atomic_file::write_on(&*self.disk, &self.paths.file(file)?, bytes)
    }

    /// Writes a file with one line of JSON, as [`write`](Self::write) does.
    pub fn write_json(&self, file: RunFile<'_>, value: &impl Serialize) -> Result<(), FileError> {
        let path = self.paths.file(file)?;
        let mut bytes =
            serde_json::to_vec(value).map_err(|error| FileError::new(path, io::Error::from(error)))?;
        bytes.push(b'\n');
        self.write(file, &bytes)
    }

    /// Removes predictions of evaluations up to `step`, except the newest `keep`. A run that is resumed and evaluates again
    /// ends with the same files, because removed ones are older than any that a later evaluation keeps.
    pub fn remove_old_predictions(&self, step: u64, keep: usize) -> Result<(), FileError> {
        let folder = self.paths.predictions();
        safe_open::check_folder(&folder)?;
        let of_step = |name: &str| {
            let (number, _) = name.strip_prefix("step-")?.split_once('-')?;
            number.parse::<u64>().ok().filter(|&other| other <= step)
        };
        let names = atomic_file::names(&folder)?;
        let steps: BTreeSet<u64> = names.iter().filter_map(|(name, _)| of_step(name)).collect();
        let Some(&oldest) = steps.iter().rev().nth(keep.saturating_sub(1)) else { return Ok(()) };
        for (_, path) in names.iter().filter(|(name, _)| of_step(name).is_some_and(|step| step < oldest)) {
            self.disk.remove_file(path).map_err(|error| FileError::new(path, error))?;
        }
        Ok(())
    }

    /// Opens the file of events, truncated at `mark`: the one in the checkpoint to resume from, or [`Mark::start`] without a
    /// checkpoint.
    ///
    /// # Errors
    /// If the bytes before the mark differ from those that the checkpoint recorded. The file is then not truncated.
    pub fn journal(&self, mark: &Mark) -> Result<Journal, FileError> {
        Journal::resume(self.paths.events(), mark, Arc::clone(&self.disk), Arc::clone(&self.lock))
    }

    /// Returns the checkpoints of the run, which keeps the newest `keep` usable ones, and at least two: one that turns out
    /// to be damaged must not be the last.
    pub fn checkpoints(&self, keep: usize) -> Checkpoints {
        Checkpoints::new(self.paths.checkpoints(), keep, Arc::clone(&self.disk), Arc::clone(&self.lock))
    }

    /// Removes the scratch files of dead processes.
    fn sweep(&self) -> Result<(), FileError> {
        let sweep = |folder: &ConfinedPath, is_run_name: &dyn Fn(&str) -> bool| {
            if !safe_open::exists(folder) {
                return Ok(());
            }
            safe_open::check_folder(folder)?;
            atomic_file::sweep(&*self.disk, folder, is_run_name)
        };
        atomic_file::sweep(&*self.disk, &self.paths.root(), Paths::is_run_file)?;
        sweep(&self.paths.predictions(), &is_plain)?;
        let checkpoints = self.paths.checkpoints();
        if safe_open::exists(&checkpoints) {
            restore_replaced(&*self.disk, &checkpoints)?;
        }
        sweep(&checkpoints, &is_step)
    }
}

/// Refuses a folder with content other than the remains of a process that was killed while it started a run.
fn refuse_content(paths: &Paths) -> Result<(), RunError> {
    let path = paths.folder().to_owned();
    if safe_open::exists(&paths.marker()) {
        return Err(RunError::Exists { path });
    }
    for (name, place) in atomic_file::names(paths.root())? {
        let is_remains = match name.as_str() {
            Paths::LOCK => true,
            Paths::CHECKPOINTS | Paths::PREDICTIONS => {
                safe_open::check_folder(&place).is_ok()
                    && atomic_file::names(&place).is_ok_and(|names| names.is_empty())
            }
            scratch => atomic_file::final_name(scratch).is_some_and(Paths::is_run_file),
        };
        if !is_remains {
            return Err(RunError::NotEmpty { path, found: name });
        }
    }
    Ok(())
}

fn check_marker(paths: &Paths) -> Result<(), RunError> {
    let path = paths.marker();
    if !safe_open::exists(&path) {
        return Err(RunError::NoRun { path: paths.folder().to_owned() });
    }
    let bytes = safe_open::read(&path, MAX_MARKER_BYTES)?;
    let problem = match serde_json::from_slice::<Marker>(&bytes) {
        Ok(Marker { format: FORMAT }) => return Ok(()),
        Ok(Marker { format }) => format!(
            "another version of calmix wrote this run, in format {format}, but this version reads format {FORMAT}"
        ),
        Err(error) => error.to_string(),
    };
    Err(FileError::new(path, FileProblem::Format(problem))
        .hint("use the version of calmix that wrote it, or start a new run in another folder")
        .into())
}
