//! The folder of a run's checkpoints: which are usable, and how many are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use calmix_io::atomic_file;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::Disk;
use calmix_io::error::FileError;

use super::found::{Checkpoint, name, steps};
use super::read::Fault;

/// The minimum number of usable checkpoints that a run keeps.
const MIN_CHECKPOINTS: usize = 2;

/// The folder of the checkpoints that this process writes.
#[derive(Debug)]
pub(super) struct CheckpointFolder {
    pub(super) path: ConfinedPath,
    keep: usize,
    pub(super) disk: Arc<dyn Disk>,
    /// Whether each older checkpoint is usable, so that each is read at most once to decide which to remove.
    pub(super) usable: BTreeMap<u64, bool>,
}

impl CheckpointFolder {
    pub(super) fn new(path: ConfinedPath, keep: usize, disk: Arc<dyn Disk>) -> Self {
        Self { path, keep: keep.max(MIN_CHECKPOINTS), disk, usable: BTreeMap::new() }
    }

    /// Returns the folder of a step's checkpoint.
    pub(super) fn of_step(&self, step: u64) -> ConfinedPath {
        self.path.join(name(step))
    }

    /// Removes checkpoints up to `step`, except the newest usable ones that the run keeps.
    pub(super) fn collect(&mut self, step: u64) -> (Vec<u64>, Option<FileError>) {
        let steps = match steps(&self.path) {
            Ok(steps) => steps,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut kept = 0;
        let mut removed = Vec::new();
        for step in steps.into_iter().rev().filter(|&other| other <= step) {
            if kept == self.keep {
                match self.remove(step) {
                    Ok(()) => removed.push(step),
                    Err(error) => return (removed, Some(error)),
                }
            } else {
                let path = self.of_step(step);
                let usable = match self.usable.get(&step) {
                    Some(&known) => known,
                    None => match Checkpoint::of_step(&path, step) {
                        // Its state is unknown, so it is neither counted nor removed.
                        Err(Fault::Unreadable(error)) => return (removed, Some(error)),
                        read => *self.usable.entry(step).or_insert(read.is_ok()),
                    },
                };
                kept += usize::from(usable);
            }
        }
        (removed, None)
    }

    /// Removes a checkpoint. It is renamed first, so that no reader mistakes a half-removed one for a damaged one.
    pub(super) fn remove(&mut self, step: u64) -> Result<(), FileError> {
        let path = self.of_step(step);
        let scratch = atomic_file::scratch(&path);
        let removed = self.disk.rename(&path, &scratch).and_then(|()| self.disk.remove_folder(&scratch));
        removed.map_err(|error| FileError::new(path, error))?;
        self.usable.remove(&step);
        Ok(())
    }
}
