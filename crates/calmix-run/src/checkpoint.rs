//! Checkpoints: the complete state of a run at one step, written atomically.
//!
//! A checkpoint is a folder `step-000000120` with files and a `MANIFEST` of their lengths and hashes. It is written under a
//! scratch name; every file is synchronised, then the folder; then it is renamed, and the parent folder is synchronised.
//! There is no pointer to the latest checkpoint that could be wrong: the highest step wins whose every byte agrees with its
//! manifest, and timestamps are ignored.
//!
//! [`newest`] also returns the newer checkpoints that it skipped, with the reasons. It does not skip a checkpoint that the
//! system cannot read, because an outage of a file server damages nothing. If there are checkpoints and none is usable, that
//! is an error: a run never restarts from step 0 by itself.
//!
//! ```
//! use calmix_run::checkpoint::{Checkpoint, Identity, CheckpointContents, newest};
//! use calmix_run::run::{Mark, Run};
//!
//! # let temp = tempfile::tempdir()?;
//! # let folder = temp.path().join("run");
//! let run = Run::create(&folder)?;
//! let mut checkpoints = run.checkpoints(2);
//! assert!(newest(checkpoints.folder())?.is_none());
//! let identity = Identity { recipe: "4f1c".into(), dataset: "90ab".into(), split: "77f0".into(), groups: 1, micro_batches: 1 };
//! for step in [10, 20, 30] {
//!     checkpoints.save(&CheckpointContents {
//!         step,
//!         identity: identity.clone(),
//!         journal: Mark::start(),
//!         parts: vec![("live.safetensors", &[step as u8; 6]), ("method.json", b"{}")],
//!     })?;
//! }
//!
//! // A byte is lost: `newest` returns the checkpoint before, and the reason.
//! std::fs::write(folder.join("checkpoints/step-000000030/method.json"), "{")?;
//! let found = newest(checkpoints.folder())?.ok_or("no checkpoint")?;
//! assert_eq!((found.checkpoint.step(), found.skipped[0].step), (20, 30));
//! assert!(found.skipped[0].reason.to_string().contains("method.json, byte 1: 1 bytes, but 2 were written"));
//! assert_eq!(found.checkpoint.bytes("live.safetensors")?, [20; 6]);
//!
//! // A single one can be opened.
//! assert_eq!(Checkpoint::open(&folder.join("checkpoints/step-000000020"))?.hash(), found.checkpoint.hash());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod files;
mod folder;
mod found;
mod manifest;
mod read;
mod skipped;
mod writer;

use std::sync::Arc;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::Disk;
use calmix_io::lock::Lock;

pub(crate) use files::remove;
pub use files::{CheckpointFiles, Written};
pub use found::{Checkpoint, FoundCheckpoint, newest, steps};
pub(crate) use found::{is_step, restore_replaced};
pub use manifest::{Identity, Manifest};
pub use read::Fault;
pub use skipped::{FORMAT, SkippedCheckpoint};
pub use writer::{Committed, Writer};

use crate::error::RunError;
use crate::run::Mark;
use folder::CheckpointFolder;

/// The contents of a checkpoint that a single process writes.
#[derive(Debug)]
pub struct CheckpointContents<'a> {
    /// The number of steps before the checkpoint.
    pub step: u64,
    /// The recipe, dataset and split of the run.
    pub identity: Identity,
    /// The end of the file of events.
    pub journal: Mark,
    /// Its files by name; names consist of lower-case letters, digits, `.`, `-` and `_`.
    pub parts: Vec<(&'a str, &'a [u8])>,
}

/// The checkpoints of a run that this process writes. It holds the run's lock.
#[derive(Debug)]
pub struct Checkpoints {
    folder: CheckpointFolder,
    _lock: Arc<Lock>,
}

impl Checkpoints {
    pub(crate) fn new(folder: ConfinedPath, keep: usize, disk: Arc<dyn Disk>, lock: Arc<Lock>) -> Self {
        Self { folder: CheckpointFolder::new(folder, keep, disk), _lock: lock }
    }

    /// Returns the folder of the checkpoints.
    pub fn folder(&self) -> &ConfinedPath {
        &self.folder.path
    }

    /// Writes a checkpoint from a single process.
    pub fn save(&mut self, snapshot: &CheckpointContents<'_>) -> Result<Committed, RunError> {
        let writer = self.begin(snapshot.step)?;
        let mut files = Vec::with_capacity(snapshot.parts.len());
        for (name, bytes) in &snapshot.parts {
            files.push(writer.parts().write(name, bytes).map_err(RunError::of_run_file)?);
        }
        writer.commit(snapshot.identity.clone(), snapshot.journal.clone(), files)
    }

    /// Starts a checkpoint to which several processes write their parts.
    ///
    /// A damaged checkpoint of the same step, which was skipped when the run was resumed, is removed.
    ///
    /// # Errors
    /// If a usable checkpoint of this step exists, if all checkpoints are damaged, or if the disk fails.
    pub fn begin(&mut self, step: u64) -> Result<Writer<'_>, RunError> {
        let path = self.folder.of_step(step);
        if path.symlink_metadata().is_ok() {
            match Checkpoint::of_step(&path, step) {
                Ok(_) => return Err(RunError::CheckpointExists { path: path.to_path_buf() }),
                Err(Fault::Damaged(_)) => {}
                Err(fault) => return Err(fault.into()),
            }
            // Fails if this checkpoint is damaged and no other is usable: the user then has to decide.
            newest(&self.folder.path)?;
            self.folder.remove(step).map_err(RunError::of_run_file)?;
        }
        Writer::new(step, &mut self.folder, false).map_err(RunError::of_run_file)
    }

    /// Starts a checkpoint that replaces one of the same step when it is committed: at the end of a run, the last step was
    /// saved before its evaluation. If the process is killed in between, the old checkpoint remains under a scratch name and
    /// is restored when the run is next opened.
    pub fn begin_replacement(&mut self, step: u64) -> Result<Writer<'_>, RunError> {
        Writer::new(step, &mut self.folder, true).map_err(RunError::of_run_file)
    }
}
