//! The training loop: the steps of a run, one after the other, and what is written between them.
//!
//! The loop writes the event of a step, then a checkpoint that records where the journal ended, then the predictions of an
//! evaluation, then its events: an evaluation takes long, and a run that has to stop abandons it. A run that resumes from
//! the checkpoint writes everything after it again, byte for byte, and starts with the evaluation that the checkpoint
//! lacks; so a kill between any two writes changes nothing in the end. The last step is saved before the last evaluation
//! too, and once more as the last thing that a run writes: a run that has that checkpoint is finished.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_data::loader::Warn;
use calmix_run::checkpoint::{Checkpoints, Identity};
use calmix_run::events::EvalSet;
use calmix_run::run::Disk;

use super::Outcome;
use super::checkpoint_files::RunProgress;
use super::error::TrainError;
use super::evaluate::EvalMode;
use super::event_writer::EventWriter;
use super::frozen_features::HeadInput;
use super::report::Timer;
use super::stepper::{StepResult, Stepper};
use super::sync::{Heartbeat, StragglerDetector};

/// A run that trains: its steps, and what is written around them.
pub(super) struct TrainLoop<'a> {
    pub(super) stepper: Stepper,
    /// What is below the head, where the backbone is frozen.
    pub(super) head: Option<HeadInput>,
    /// The recipe as the run's folder has it.
    pub(super) recipe_toml: String,
    pub(super) progress: RunProgress,
    pub(super) events: EventWriter<'a>,
    /// On rank 0, which commits them.
    pub(super) checkpoints: Option<Checkpoints>,
    /// Where the other ranks write their files of a checkpoint.
    pub(super) disk: Arc<dyn Disk>,
    pub(super) identity: Identity,
    /// Steps that were done.
    pub(super) step: u64,
    /// The step of the newest checkpoint.
    pub(super) saved: Option<u64>,
    pub(super) stop: &'a AtomicBool,
    /// Whether a process received a request to stop, as all know since the last step.
    pub(super) stop_heard: bool,
    /// How long the last step took, waiting for other processes not counted.
    pub(super) busy: Duration,
    pub(super) stragglers: StragglerDetector,
    /// Corrupt samples of each split that people were told of.
    pub(super) left_out: BTreeMap<EvalSet, u64>,
    pub(super) warn: Warn,
}

impl TrainLoop<'_> {
    /// Trains to the end, or until a request to stop.
    pub(super) fn run(mut self) -> Result<Outcome, TrainError> {
        let recipe = self.stepper.recipe.clone();
        let total = recipe.train.steps;
        let batches = self.stepper.data.batches(&recipe, &self.stepper.layout, self.step..total)?;
        let mut batches = batches.warning(Arc::clone(&self.warn));
        let mut timer = Timer::new(&self.stepper.layout, self.step, total);
        let mut evaluates = self.lacks_evaluation();
        while self.step < total {
            if std::mem::take(&mut evaluates) {
                match self.evaluate(EvalMode::FiguresOnly) {
                    Err(TrainError::Abandoned) => return self.stopped(),
                    evaluated => drop(evaluated?),
                }
            }
            if self.stop_requested() {
                return self.stopped();
            }
            let (start, waited) = (Instant::now(), self.stepper.layout.processes.waited());
            let batch = match self.stepper.next_batch(&mut batches, self.step, self.stop) {
                Ok(batch) => batch,
                Err(error) => return self.end_without_batch(Some(error)),
            };
            let logs = self.is_due(batch.step + 1, recipe.log.every);
            let report = self.stepper.step(&batch, self.heartbeat())?;
            self.read_heartbeats(&report.heartbeats)?;
            if let StepResult::Lost = report.result {
                return self.end_without_batch(None);
            }
            self.step = batch.step + 1;
            self.report(report.result, logs)?;
            let waited = self.stepper.layout.processes.waited().saturating_sub(waited);
            self.busy = start.elapsed().saturating_sub(waited);
            if logs {
                self.events.pace(&timer.pace(self.step, &self.stepper.layout, batches.counters()))?;
            } else if let Some(pace) = timer.first_pace(self.step, &self.stepper.layout, batches.counters()) {
                self.events.first_pace(&pace);
            }
            evaluates = self.lacks_evaluation();
            // The last step has an end of its own.
            if self.step < total && (evaluates || self.step.is_multiple_of(recipe.checkpoint.every)) {
                self.try_save()?;
            }
        }
        drop(batches);
        self.finish()
    }

    /// Ends a run that has to stop: with its state saved.
    pub(super) fn stopped(mut self) -> Result<Outcome, TrainError> {
        self.save()?;
        self.events.flush()?;
        Ok(Outcome::Stopped { step: self.step })
    }

    /// Whether an evaluation is due after the last step and has not been made: also where a run resumes from a checkpoint
    /// that was made before it. The last step has an end of its own.
    fn lacks_evaluation(&self) -> bool {
        let recipe = &self.stepper.recipe;
        let is_due = self.step > 0 && self.step.is_multiple_of(recipe.evaluate.every);
        is_due
            && self.step < recipe.train.steps
            && !self.progress.history.iter().any(|seen| seen.step == self.step)
    }

    /// What this process tells the others in a step.
    pub(super) fn heartbeat(&self) -> Heartbeat {
        Heartbeat { stop: self.stop.load(Ordering::Relaxed), busy: self.busy, ..Heartbeat::default() }
    }

    /// Reads the heartbeats of all processes: a request to stop, a straggler.
    fn read_heartbeats(&mut self, heartbeats: &[Heartbeat]) -> Result<(), TrainError> {
        self.stop_heard |= heartbeats.iter().any(|beat| beat.stop);
        let straggler = self.stragglers.update(heartbeats);
        straggler.map_or(Ok(()), |note| self.events.aside(note))
    }

    /// Several processes stop at the step after the one in which all received the request.
    pub(super) fn stop_requested(&self) -> bool {
        let alone = self.stepper.layout.processes.size() == 1;
        if alone { self.stop.load(Ordering::Relaxed) } else { self.stop_heard }
    }

    fn is_due(&self, step: u64, every: u64) -> bool {
        step.is_multiple_of(every) || step == self.stepper.recipe.train.steps
    }
}
