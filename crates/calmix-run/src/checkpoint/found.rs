//! Finds the checkpoint to resume from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use calmix_io::atomic_file;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::Disk;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open::check_folder;

use super::manifest::{Identity, MANIFEST, Manifest};
use super::read::{Fault, read_written, retry_transient, verify};
use super::skipped::SkippedCheckpoint;
use crate::error::RunError;

/// The newest usable checkpoint.
#[derive(Debug)]
pub struct FoundCheckpoint {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Newer checkpoints that are unusable, newest first.
    pub skipped: Vec<SkippedCheckpoint>,
}

/// A checkpoint whose files match their hashes.
#[derive(Debug)]
pub struct Checkpoint {
    folder: ConfinedPath,
    manifest: Manifest,
    hash: String,
}

/// Finds the newest checkpoint in a folder whose every byte is as written; `None` if there are no checkpoints. This changes
/// nothing and needs no lock.
///
/// # Errors
/// If there are checkpoints and none is usable, the newest intact one has another format, or the system cannot read one even
/// after retries.
pub fn newest(folder: impl Into<ConfinedPath>) -> Result<Option<FoundCheckpoint>, RunError> {
    let folder = folder.into();
    let mut skipped = Vec::new();
    let listed = retry_transient(|| Ok(steps(&folder)?))?;
    for step in listed.into_iter().rev() {
        match Checkpoint::of_step(&folder.join(name(step)), step) {
            Ok(checkpoint) => return Ok(Some(FoundCheckpoint { checkpoint, skipped })),
            Err(Fault::Damaged(reason)) => skipped.push(SkippedCheckpoint { step, reason }),
            Err(fault) => return Err(fault.into()),
        }
    }
    if skipped.is_empty() {
        return Ok(None);
    }
    Err(RunError::NoneUsable { folder: folder.to_path_buf(), skipped })
}

impl Checkpoint {
    /// Opens the checkpoint in a folder named like `step-000000120`, even if there are newer ones. This changes nothing and
    /// needs no lock.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let step = folder.file_name().and_then(|name| step_of(&name.to_string_lossy()));
        let step = step.ok_or_else(|| RunError::CheckpointName { path: folder.to_owned() })?;
        Ok(Self::of_step(&folder.into(), step)?)
    }

    /// Reads the manifest, and verifies every file.
    pub(super) fn of_step(folder: &ConfinedPath, step: u64) -> Result<Self, Fault> {
        Self::verified(folder, step, |_, _| true)
    }

    /// Opens a step's checkpoint in a folder of checkpoints, and verifies only the files for which `needed` returns true.
    pub fn of_files(
        folder: impl Into<ConfinedPath>,
        step: u64,
        needed: impl Fn(&str, &Identity) -> bool,
    ) -> Result<Self, Fault> {
        Self::verified(&folder.into().join(name(step)), step, needed)
    }

    fn verified(
        folder: &ConfinedPath,
        step: u64,
        needed: impl Fn(&str, &Identity) -> bool,
    ) -> Result<Self, Fault> {
        retry_transient(|| Self::verify(folder, step, &needed))
    }

    fn verify(
        folder: &ConfinedPath,
        step: u64,
        needed: impl Fn(&str, &Identity) -> bool,
    ) -> Result<Self, Fault> {
        check_folder(folder)?;
        let (manifest, hash) = Manifest::read(folder, step)?;
        for (name, path) in atomic_file::names(folder)? {
            if name != MANIFEST && manifest.file(&name).is_none() {
                let problem = FileProblem::Content("a file that is not in the manifest".into());
                return Err(FileError::new(path, problem).into());
            }
        }
        for file in manifest.files.iter().filter(|file| needed(&file.name, &manifest.identity)) {
            verify(folder, file)?;
        }
        Ok(Self { folder: folder.clone(), manifest, hash })
    }

    /// Returns the number of steps before the checkpoint.
    pub fn step(&self) -> u64 {
        self.manifest.step
    }

    /// Returns its manifest: its files, and the run that it belongs to.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the hash of its manifest, which covers every byte.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Reads a file and verifies it again.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, FileError> {
        self.bytes_up_to(name, u64::MAX)
    }

    /// Reads a file as [`bytes`](Self::bytes) does, if it has at most `max_bytes`, since a manifest may come from an
    /// untrusted source.
    pub fn bytes_up_to(&self, name: &str, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        let written = self.manifest.file(name).ok_or_else(|| {
            let problem = FileProblem::Content(format!("the part {name:?} is missing"));
            FileError::new(&self.folder, problem).hint("is this a checkpoint of the same method?")
        })?;
        if written.length > max_bytes {
            let problem = format!("{} bytes, more than {max_bytes}", written.length);
            return Err(FileError::new(self.folder.join(name), FileProblem::Limit(problem)));
        }
        let read = retry_transient(|| Ok(read_written(&self.folder, written)?));
        read.map_err(|fault| match fault {
            Fault::Damaged(error) | Fault::Unreadable(error) => error,
            Fault::OtherFormat { path, .. } => {
                FileError::new(path, FileProblem::Format("another format".into()))
            }
        })
    }
}

/// Returns the name of a step's checkpoint.
pub(super) fn name(step: u64) -> String {
    format!("step-{step:09}")
}

/// Returns whether this is a checkpoint's name.
pub(crate) fn is_step(name: &str) -> bool {
    step_of(name).is_some()
}

fn step_of(text: &str) -> Option<u64> {
    let step = text.strip_prefix("step-")?.parse().ok()?;
    (name(step) == text).then_some(step)
}

/// Restores a checkpoint that was being replaced by another of the same step.
///
/// The replacement takes two renames. A process killed between them leaves both checkpoints under scratch names, and
/// removing them would lose the step, or the whole run if it has no other. Only the process that holds the run's lock may
/// call this.
pub(crate) fn restore_replaced(disk: &dyn Disk, folder: &ConfinedPath) -> Result<(), FileError> {
    let present = steps(folder)?;
    let mut missing: BTreeMap<u64, Vec<ConfinedPath>> = BTreeMap::new();
    for (scratch, path) in atomic_file::names(folder)? {
        let step = atomic_file::final_name(&scratch).and_then(step_of);
        if let Some(step) = step.filter(|step| !present.contains(step)) {
            missing.entry(step).or_default().push(path);
        }
    }
    for (step, paths) in missing {
        // A single one is a new checkpoint that was not committed.
        let [first, second] = &paths[..] else { continue };
        if Checkpoint::of_step(first, step).is_err() || Checkpoint::of_step(second, step).is_err() {
            continue;
        }
        disk.rename(first, &folder.join(name(step))).map_err(|error| FileError::new(first, error))?;
        disk.sync_folder(folder).map_err(|error| FileError::new(folder, error))?;
    }
    Ok(())
}

/// Lists the steps of all checkpoints in a folder, intact or not. The step orders checkpoints; timestamps are ignored.
pub fn steps(folder: impl Into<ConfinedPath>) -> Result<BTreeSet<u64>, FileError> {
    let folder = folder.into();
    check_folder(&folder)?;
    Ok(atomic_file::names(&folder)?.iter().filter_map(|(name, _)| step_of(name)).collect())
}
