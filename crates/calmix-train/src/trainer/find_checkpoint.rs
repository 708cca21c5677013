//! Which checkpoint the processes of a run go on from: the newest one that all of them can use. Each verifies the files
//! that it has to read, and no others.

use std::path::Path;

use calmix_data::error::{DataError, Problem};
use calmix_dist::Processes;

use super::checkpoint_files::is_read_by;
use super::error::TrainError;
use super::together::{from_all, from_first};
use crate::checkpoint::{Checkpoint, CheckpointError, Fault, Found, Skipped, newest, steps};

/// Finds the newest checkpoint in a folder of checkpoints that every process can use; none if there are no checkpoints.
pub(super) fn find_checkpoint(processes: &Processes, folder: &Path) -> Result<Option<Found>, TrainError> {
    let (rank, size) = (processes.rank(), processes.size());
    if size == 1 {
        return Ok(newest(folder)?);
    }
    let listed = (rank == 0).then(|| steps(folder).map(|steps| steps.into_iter().collect::<Vec<u64>>()));
    let mut skipped = Vec::new();
    for step in from_first(processes, listed)?.into_iter().rev() {
        let own = Checkpoint::of_files(folder, step, |name, identity| {
            let shards = identity.groups as usize * identity.shards as usize;
            is_read_by(name, shards, rank, size)
        });
        let said = match &own {
            Ok(_) => Ok(None),
            Err(Fault::Damaged(reason)) => Ok(Some(reason.to_string())),
            Err(Fault::OtherFormat { path, format }) => {
                Err(CheckpointError::OtherFormat { path: path.clone(), format: *format })
            }
        };
        let damage = from_all(processes, said)?.into_iter().flatten().next();
        match (own, damage) {
            (Ok(checkpoint), None) => return Ok(Some(Found { checkpoint, skipped })),
            (Err(Fault::Damaged(reason)), _) => skipped.push(Skipped { step, reason }),
            (_, damage) => {
                let problem = Problem::Content(damage.unwrap_or_default());
                skipped.push(Skipped { step, reason: DataError::new(folder, problem) });
            }
        }
    }
    if skipped.is_empty() {
        return Ok(None);
    }
    Err(CheckpointError::NoneUsable { folder: folder.to_owned(), skipped }.into())
}
