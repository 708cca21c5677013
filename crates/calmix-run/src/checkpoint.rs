//! Checkpoints: the complete state of a run at one step, written atomically.
//!
//! A checkpoint is a folder `step-000000120` with files and a `MANIFEST` that has the length and the hash of each. It is
//! written under a scratch name, every file is synchronised, then the folder; then it is renamed, and the folder above is
//! synchronised. There is no pointer to the latest one that could be wrong: the highest step whose every byte agrees with its
//! manifest wins, and timestamps are ignored.
//!
//! [`newest`] also returns the newer checkpoints that it skipped, with the reason. It does not skip one that the system
//! cannot read: a file server that is away for a moment has damaged nothing. If there are checkpoints and none can be
//! used, that is an error: a run never starts again from step 0 by itself.
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

/// The contents of a checkpoint that one process writes alone.
#[derive(Debug)]
pub struct CheckpointContents<'a> {
    /// The number of steps before it.
    pub step: u64,
    /// The recipe, dataset and split that it belongs to.
    pub identity: Identity,
    /// Where the file of events ends.
    pub journal: Mark,
    /// Its files by name, of lower-case letters, digits, `.`, `-` and `_`.
    pub parts: Vec<(&'a str, &'a [u8])>,
}

/// The checkpoints of a run that this process writes to. It holds the run's lock.
#[derive(Debug)]
pub struct Checkpoints {
    folder: CheckpointFolder,
    _lock: Arc<Lock>,
}

impl Checkpoints {
    pub(crate) fn new(folder: ConfinedPath, keep: usize, disk: Arc<dyn Disk>, lock: Arc<Lock>) -> Self {
        Self { folder: CheckpointFolder::new(folder, keep, disk), _lock: lock }
    }

    /// The folder that they are in.
    pub fn folder(&self) -> &ConfinedPath {
        &self.folder.path
    }

    /// Writes a checkpoint from one process.
    pub fn save(&mut self, snapshot: &CheckpointContents<'_>) -> Result<Committed, RunError> {
        let writer = self.begin(snapshot.step)?;
        let mut files = Vec::with_capacity(snapshot.parts.len());
        for (name, bytes) in &snapshot.parts {
            files.push(writer.parts().write(name, bytes).map_err(RunError::of_run_file)?);
        }
        writer.commit(snapshot.identity.clone(), snapshot.journal.clone(), files)
    }

    /// Begins a checkpoint to which several processes write their parts.
    ///
    /// A damaged checkpoint of the same step, which was skipped when the run was resumed, is removed.
    ///
    /// # Errors
    /// If there is one of this step that can be used, if there are only damaged ones, or if the disk fails.
    pub fn begin(&mut self, step: u64) -> Result<Writer<'_>, RunError> {
        let path = self.folder.of_step(step);
        if path.symlink_metadata().is_ok() {
            match Checkpoint::of_step(&path, step) {
                Ok(_) => return Err(RunError::CheckpointExists { path: path.to_path_buf() }),
                Err(Fault::Damaged(_)) => {}
                Err(fault) => return Err(fault.into()),
            }
            // An error if this is damaged and no other is usable: the user has to decide then.
            newest(&self.folder.path)?;
            self.folder.remove(step).map_err(RunError::of_run_file)?;
        }
        Writer::new(step, &mut self.folder, false).map_err(RunError::of_run_file)
    }

    /// Begins a checkpoint that replaces one of the same step when it is committed: the end of a run, whose last step was saved
    /// before it was evaluated. If the process is killed in between, the one that is left under a scratch name is restored when the
    /// run is next opened.
    pub fn begin_replacement(&mut self, step: u64) -> Result<Writer<'_>, RunError> {
        Writer::new(step, &mut self.folder, true).map_err(RunError::of_run_file)
    }
}
