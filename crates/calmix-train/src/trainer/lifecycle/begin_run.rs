//! The setup of an opened run for its first step: data, network, state, events.

use calmix_engine::device::{self, set_threads};
use calmix_engine::engine::Engine;
use calmix_engine::error::EngineError;
use calmix_lifecycle::pretrained::BackboneFile;
use calmix_run::checkpoint::{FoundCheckpoint, Identity};
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Note;
use calmix_run::run::Mark;

use super::OpenedRun;
use super::checkpoint_files::{self, RunProgress};
use super::run_log::RunLog;
use super::save::CheckpointSaver;
use super::train_loop::TrainLoop;
use crate::trainer::Trainer;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::ParallelLayout;
use crate::trainer::ranks::step_signals::StepSignals;
use crate::trainer::ranks::sync::RunFingerprint;
use crate::trainer::step::engine_setup::{MemoryNeed, check_network, settings};
use crate::trainer::step::stepper::Stepper;

impl<'a> Trainer<'a> {
    /// Creates the training loop of an opened run, at its first step or after its checkpoint.
    pub(crate) fn begin(self, opened: OpenedRun) -> Result<TrainLoop<'a>, TrainError> {
        let OpenedRun { recipe: resolved, data, found, run, mut notes } = opened;
        if run.is_some() {
            RunFingerprint::check(Ok(self.fingerprint(&resolved, &data)), &self.processes)?;
        }
        let request = self.request;
        let recipe = &resolved.recipe;
        set_threads(recipe.train.threads as usize);
        let mut settings = settings(recipe, data.samples.classes.len())?;
        // Each process of a machine gets its own GPU.
        if self.processes.size() > 1 {
            settings.device = settings.device.of_local_rank(self.local.rank, device::visible_gpus());
        }
        let layout = ParallelLayout::new(self.processes, recipe)?;
        let samples = data.samples_per_micro_batch(recipe, &layout).iter().sum();
        // Refuse before memory is allocated: a process that runs out of it cannot report that.
        MemoryNeed::new(&recipe.method, &settings, samples).check(self.local.processes)?;
        if let Some(found) = &found {
            check_network(&found.checkpoint, &settings)?;
        }
        let mut stepper = Stepper::new(recipe.clone(), settings, data, layout, self.watch)?;
        // A checkpoint already contains weights that were trained from the backbone.
        if found.is_none()
            && let Some(file) = BackboneFile::read(&recipe.network)?
        {
            start_from(&mut stepper.state.engine, &file)?;
        }
        let (mut step, mut mark, mut progress) = (0, Mark::start(), RunProgress::default());
        if let Some(FoundCheckpoint { checkpoint, skipped }) = &found {
            (step, mark) = (checkpoint.step(), checkpoint.manifest().journal.clone());
            progress = checkpoint_files::restore(checkpoint, &stepper.layout, &mut stepper.state)?;
            notes.extend(skipped.iter().map(|bad| Note {
                step,
                text: format!("the checkpoint of step {} cannot be used: {}", bad.step, bad.reason),
                hint: format!("the run resumes from step {step}"),
            }));
        }
        let identity = Identity {
            recipe: resolved.hash(),
            dataset: stepper.data.samples.fingerprint.clone(),
            split: stepper.data.samples.split_hash.clone(),
            groups: recipe.train.groups,
            micro_batches: recipe.train.micro_batches,
        };
        let checkpoints = run.as_ref().map(|run| run.checkpoints(recipe.checkpoint.keep as usize));
        let mut events = match run {
            Some(run) => EventWriter::new(run, &mark, step, recipe, request.sinks)?,
            None => EventWriter::silent(recipe),
        };
        events.started(step);
        for note in notes {
            events.notify_sinks_only(note)?;
        }
        let log = RunLog::new(events, progress, recipe);
        let saver = CheckpointSaver {
            checkpoints,
            disk: request.disk,
            identity,
            recipe_toml: resolved.to_toml(),
            saved: found.map(|found| found.checkpoint.step()),
        };
        let signals = StepSignals::new(request.stop);
        Ok(TrainLoop { stepper, signals, log, saver, warn: request.warn, step })
    }
}

/// Loads the backbone of a file into an engine.
fn start_from(engine: &mut Engine, file: &BackboneFile) -> Result<(), TrainError> {
    engine.start_from(file.bytes()).map_err(|error| match error {
        EngineError::Weights(_) => file.refused(&error).into(),
        error => error.into(),
    })
}
