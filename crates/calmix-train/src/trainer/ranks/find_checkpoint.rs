//! The choice of the checkpoint that processes resume from: the newest one that all of them can use. Each verifies only the files
//! that it has to read.

use std::path::Path;

use calmix_dist::ProcessGroup;
use calmix_dist::tree::held;
use calmix_io::error::{FileError, FileProblem};
use calmix_run::checkpoint::{Checkpoint, Fault, FoundCheckpoint, SkippedCheckpoint, newest, steps};
use calmix_run::error::RunError;

use super::collect_results::{all_gather_results, broadcast_result};
use crate::trainer::error::TrainError;

/// Finds the newest checkpoint that every process can use; `None` if there are no checkpoints.
pub(crate) fn find_checkpoint(
    processes: &ProcessGroup,
    folder: &Path,
) -> Result<Option<FoundCheckpoint>, TrainError> {
    let (rank, size) = (processes.rank(), processes.size());
    if size == 1 {
        return Ok(newest(folder)?);
    }
    let listed = (rank == 0).then(|| steps(folder).map(|steps| steps.into_iter().collect::<Vec<u64>>()));
    let mut skipped = Vec::new();
    for step in broadcast_result(processes, listed)?.into_iter().rev() {
        let local = Checkpoint::of_files(folder, step, |name, identity| {
            let micro_batches = identity.groups as usize * identity.micro_batches as usize;
            is_read_by(name, micro_batches, rank, size)
        });
        let damage = match &local {
            Ok(_) => Ok(None),
            Err(Fault::Damaged(reason)) => Ok(Some(reason.to_string())),
            Err(Fault::Unreadable(error)) => Err(TrainError::RemoteError {
                process: rank,
                problem: format!("{error}; check that the disk is mounted and readable, then try again"),
                mistake: false,
            }),
            Err(Fault::OtherFormat { path, format }) => {
                Err(RunError::OtherFormat { path: path.clone(), format: *format }.into())
            }
        };
        let damage = all_gather_results(processes, damage)?.into_iter().flatten().next();
        match (local, damage) {
            (Ok(checkpoint), None) => return Ok(Some(FoundCheckpoint { checkpoint, skipped })),
            (Err(Fault::Damaged(reason)), _) => skipped.push(SkippedCheckpoint { step, reason }),
            (_, damage) => {
                let problem = FileProblem::Content(damage.unwrap_or_default());
                skipped.push(SkippedCheckpoint { step, reason: FileError::new(folder, problem) });
            }
        }
    }
    if skipped.is_empty() {
        return Ok(None);
    }
    Err(RunError::NoneUsable { folder: folder.to_owned(), skipped }.into())
}

/// Returns the name of the file with the samples of a micro-batch.
pub(crate) fn samples_of(micro_batch: usize) -> String {
    format!("samples-{micro_batch}.safetensors")
}

/// Returns whether a rank has to read a file of a checkpoint with `micro_batches` micro-batches: every file, except the samples
/// of micro-batches that other ranks run.
fn is_read_by(name: &str, micro_batches: usize, rank: usize, size: usize) -> bool {
    !name.starts_with("samples-")
        || held(micro_batches, rank, size).any(|micro_batch| samples_of(micro_batch) == name)
}
