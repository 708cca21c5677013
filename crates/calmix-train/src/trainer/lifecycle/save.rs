//! Saving a checkpoint: every rank writes its files, and rank 0 commits those of all.

use std::sync::Arc;

use calmix_io::disk::Disk;
use calmix_run::checkpoint::{CheckpointFiles, Checkpoints, Identity, Writer, Written};
use calmix_run::events::Note;
use calmix_run::run::Mark;

use super::checkpoint_files;
use super::run_log::RunLog;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::collect_results::{all_gather_results, broadcast_result};
use crate::trainer::step::StepPhase;
use crate::trainer::step::stepper::Stepper;

/// The writer of a run's checkpoints.
pub(crate) struct CheckpointSaver {
    /// The checkpoints of the run, on rank 0 only, which commits them.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// The disk that the other ranks write their files of a checkpoint to.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) identity: Identity,
    /// The recipe in the run's folder.
    pub(crate) recipe_toml: String,
    /// The step of the newest checkpoint.
    pub(crate) saved: Option<u64>,
}

impl CheckpointSaver {
    /// Saves a checkpoint during training; the recipe decides whether a failure ends the run.
    pub(crate) fn try_save(
        &mut self,
        step: u64,
        stepper: &Stepper,
        log: &mut RunLog<'_>,
    ) -> Result<(), TrainError> {
        match self.save(step, stepper, log) {
            Ok(()) => {
                log.events.clear_failure();
                Ok(())
            }
            Err(error @ TrainError::Processes(_)) => Err(error),
            Err(error) => log.events.handle_failure(error),
        }
    }

    /// Saves a checkpoint of the state after `step` steps, unless there is one. The final checkpoint replaces the one before the
    /// last evaluation.
    pub(crate) fn save(
        &mut self,
        step: u64,
        stepper: &Stepper,
        log: &mut RunLog<'_>,
    ) -> Result<(), TrainError> {
        let is_saved = self.saved == Some(step);
        let is_end = log.progress.finished.is_some();
        if is_saved && !is_end || step == 0 {
            return Ok(());
        }
        let processes = &stepper.layout.processes;
        let journal = log.events.mark();
        let begun = self.checkpoints.as_mut().map(|checkpoints| -> Result<_, TrainError> {
            let journal = journal?;
            let writer = if is_saved { checkpoints.begin_replacement(step) } else { checkpoints.begin(step) };
            Ok((writer?, journal))
        });
        let folder = |begun: &Result<(Writer<'_>, Mark), TrainError>| match begun {
            Ok((writer, _)) => Ok(writer.parts().folder().to_path_buf()),
            Err(error) => Err(error.as_text()),
        };
        // Broadcast rank 0's error too, so that no rank waits for a checkpoint that was not begun.
        let folder = broadcast_result(processes, begun.as_ref().map(folder));
        let begun = begun.transpose()?;
        let folder = folder?;
        let parts = match &begun {
            Some((writer, _)) => writer.parts().clone(),
            None => CheckpointFiles::new(&folder, Arc::clone(&self.disk)),
        };
        let write = || -> Result<Vec<Written>, TrainError> {
            let write = |(name, bytes): (String, Vec<u8>)| Ok(parts.write(&name, &bytes)?);
            let samples = checkpoint_files::sample_files(step, &stepper.layout, &stepper.state);
            let mut written =
                samples.map(|file| file.and_then(write)).collect::<Result<Vec<_>, TrainError>>()?;
            if stepper.layout.leads() {
                let files = checkpoint_files::files(step, &stepper.state, &log.progress, &self.recipe_toml)?;
                for file in files {
                    written.push(write(file)?);
                }
            }
            Ok(written)
        };
        let written = write();
        stepper.watch.enter(StepPhase::Save, step);
        // Gather the results before returning an error: the other ranks would wait for one that left early.
        let written = all_gather_results(processes, written)?.concat();
        let identity = self.identity.clone();
        let committed = begun.map(|(writer, journal)| writer.commit(identity, journal, written));
        let cleanup_error = committed.map(|committed| {
            committed.map(|committed| committed.cleanup_error.map(|error| error.to_string()))
        });
        let cleanup_error = broadcast_result(processes, cleanup_error)?;
        self.saved = Some(step);
        if let Some(cleanup_error) = cleanup_error {
            let text = format!("an old checkpoint could not be deleted: {cleanup_error}");
            let hint = "the new one is complete; delete the old one by hand".to_owned();
            log.events.notify_sinks_only(Note { step, text, hint })?;
        }
        Ok(())
    }
}
