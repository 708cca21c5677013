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

use calmix_data::loader::{LoadError, Warn};
use calmix_run::checkpoint::{Checkpoints, Identity};
use calmix_run::events::{EvalSet, Note};
use calmix_run::run::Disk;

use super::checkpoint_files::RunProgress;
use super::event_writer::EventWriter;
use super::report::Timer;
use crate::trainer::Outcome;
use crate::trainer::data::frozen_features::HeadInput;
use crate::trainer::data::next_batch::next_batch;
use crate::trainer::error::TrainError;
use crate::trainer::eval::evaluate::EvalMode;
use crate::trainer::ranks::collect_results::all_gather_results;
use crate::trainer::ranks::sync::{Heartbeat, StragglerDetector};
use crate::trainer::step::stepper::{StepResult, Stepper};

/// A run that trains: its steps, and what is written around them.
pub(crate) struct TrainLoop<'a> {
    pub(crate) stepper: Stepper,
    /// What is below the head, where the backbone is frozen.
    pub(crate) head: Option<HeadInput>,
    /// The recipe as the run's folder has it.
    pub(crate) recipe_toml: String,
    pub(crate) progress: RunProgress,
    pub(crate) events: EventWriter<'a>,
    /// On rank 0, which commits them.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// Where the other ranks write their files of a checkpoint.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) identity: Identity,
    /// Steps that were done.
    pub(crate) step: u64,
    /// The step of the newest checkpoint.
    pub(crate) saved: Option<u64>,
    pub(crate) stop: &'a AtomicBool,
    /// Whether a process received a request to stop, as all know since the last step.
    pub(crate) stop_heard: bool,
    /// How long the last step took, waiting for other processes not counted.
    pub(crate) busy: Duration,
    pub(crate) stragglers: StragglerDetector,
    /// Corrupt samples of each split that people were told of.
    pub(crate) left_out: BTreeMap<EvalSet, u64>,
    pub(crate) warn: Warn,
}

impl TrainLoop<'_> {
    /// Trains to the end, or until a request to stop.
    pub(crate) fn run(mut self) -> Result<Outcome, TrainError> {
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
            let processes = &self.stepper.layout.processes;
            let (start, waited) = (Instant::now(), processes.waited());
            let batch = match next_batch(&mut batches, self.step, processes, self.stop) {
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
    pub(crate) fn stopped(mut self) -> Result<Outcome, TrainError> {
        self.save()?;
        self.events.flush()?;
        Ok(Outcome::Stopped { step: self.step })
    }

    /// Ends a run at the boundary between two steps, since a process has no batch for the next one: this process, for the
    /// reason in `own`, or another.
    ///
    /// # Errors
    /// Why there is no batch, unless the run has to stop; the state is saved in any case, where that is possible.
    pub(crate) fn end_without_batch(mut self, own: Option<LoadError>) -> Result<Outcome, TrainError> {
        if own.is_some() && self.stepper.layout.processes.size() > 1 {
            // The others are about to gather what all know of the step: this one takes part, and says that it is lost.
            let (blank, says) =
                (self.stepper.data.blank_batch(self.step, &self.stepper.partition), self.heartbeat());
            self.stepper.step(&blank, Heartbeat { lost: true, ..says })?;
        }
        let own = own.filter(|error| !matches!(error, LoadError::Interrupted)).map_or(Ok(()), Err);
        match all_gather_results(&self.stepper.layout.processes, own) {
            Ok(_) => self.stopped(),
            Err(error @ TrainError::Processes(_)) => Err(error),
            Err(error) => {
                if let Err(problem) = self.save() {
                    let text = format!("the run cannot be saved either: {problem}");
                    let hint = "its last checkpoint is intact".to_owned();
                    self.events.aside(Note { step: self.step, text, hint })?;
                }
                self.events.flush()?;
                Err(error)
            }
        }
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
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        Heartbeat { stop: self.stop.load(Ordering::Relaxed), busy: self.busy, ..Heartbeat::default() }
    }

    /// Reads the heartbeats of all processes: a request to stop, a straggler.
    fn read_heartbeats(&mut self, heartbeats: &[Heartbeat]) -> Result<(), TrainError> {
        self.stop_heard |= heartbeats.iter().any(|beat| beat.stop);
        let straggler = self.stragglers.update(heartbeats);
        straggler.map_or(Ok(()), |note| self.events.aside(note))
    }

    /// Several processes stop at the step after the one in which all received the request.
    pub(crate) fn stop_requested(&self) -> bool {
        let alone = self.stepper.layout.processes.size() == 1;
        if alone { self.stop.load(Ordering::Relaxed) } else { self.stop_heard }
    }

    fn is_due(&self, step: u64, every: u64) -> bool {
        step.is_multiple_of(every) || step == self.stepper.recipe.train.steps
    }
}
