//! The training loop: the steps of a run, with the events, checkpoints and evaluations between them.
//!
//! The loop writes the event of a step, then a checkpoint that records where the journal ended, then the predictions of an
//! evaluation, then its events: an evaluation takes long, and a run that has to stop abandons it. A run that resumes from the
//! checkpoint writes everything after it again, byte for byte, and starts with the evaluation that was due; so a kill between any
//! two writes does not change the final files. The last step is also saved before the last evaluation, and once more at the very
//! end: a run with that checkpoint is finished.

use std::sync::Arc;
use std::time::Instant;

use calmix_data::error::DataError;
use calmix_data::loader::Warn;
use calmix_run::events::Note;

use super::run_log::{RunLog, Timer};
use super::save::CheckpointSaver;
use crate::trainer::Outcome;
use crate::trainer::data::next_batch;
use crate::trainer::error::TrainError;
use crate::trainer::eval::{EvalMode, evaluate_network};
use crate::trainer::ranks::collect_results::all_gather_results;
use crate::trainer::ranks::step_signals::StepSignals;
use crate::trainer::ranks::sync::Heartbeat;
use crate::trainer::step::stepper::{StepResult, Stepper};

/// A run in training: the stepper, the log and the checkpoints.
pub(crate) struct TrainLoop<'a> {
    pub(crate) stepper: Stepper,
    pub(crate) signals: StepSignals<'a>,
    pub(crate) log: RunLog<'a>,
    pub(crate) saver: CheckpointSaver,
    pub(crate) warn: Warn,
    /// The number of steps so far.
    pub(crate) step: u64,
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
            // The checkpoint of this step is already saved, so a run that stops here resumes with the evaluation.
            if std::mem::take(&mut evaluates) {
                match self.evaluate() {
                    Err(error) if error.is_stopped() => return self.stopped(),
                    evaluated => evaluated?,
                }
            }
            let processes = &self.stepper.layout.processes;
            if self.signals.stop_requested(processes) {
                return self.stopped();
            }
            let start = Instant::now();
            let waited = processes.waited();
            let batch = match next_batch(&mut batches, self.step, processes, self.signals.stop()) {
                Ok(batch) => batch,
                Err(error) => return self.end_without_batch(Some(error)),
            };
            let is_logged = (batch.step + 1).is_multiple_of(recipe.log.every) || batch.step + 1 == total;
            let report = self.stepper.step(&batch, self.signals.heartbeat())?;
            if let Some(straggler) =
                self.signals.read(&report.heartbeats, &self.stepper.layout.micro_batches_by_rank())
            {
                self.log.events.notify_sinks_only(straggler)?;
            }
            // Another process has no batch, so no process has taken the step.
            if let StepResult::NoBatch = report.result {
                return self.end_without_batch(None);
            }
            self.step = batch.step + 1;
            self.log.step(self.step, report.result, is_logged, &self.stepper)?;
            let waited = self.stepper.layout.processes.waited().saturating_sub(waited);
            self.signals.set_busy(start.elapsed().saturating_sub(waited));
            if is_logged {
                self.log.events.pace(&timer.pace(self.step, &self.stepper.layout, batches.counters()))?;
            } else if let Some(pace) = timer.current_pace(self.step, &self.stepper.layout, batches.counters())
            {
                self.log.events.current_pace(&pace);
            }
            evaluates = self.lacks_evaluation();
            // The last step is evaluated and saved by the end of the run.
            if self.step < total && (evaluates || self.step.is_multiple_of(recipe.checkpoint.every)) {
                self.saver.try_save(self.step, &self.stepper, &mut self.log)?;
            }
        }
        drop(batches);
        self.finish()
    }

    fn evaluate(&mut self) -> Result<(), TrainError> {
        let stop = self.stepper.eval_stop(self.step, self.signals.stop(), &self.warn);
        evaluate_network(&self.stepper, EvalMode::MetricsOnly, stop, &mut self.log).map(drop)
    }

    /// Saves the state of a run that has to stop.
    fn stopped(mut self) -> Result<Outcome, TrainError> {
        self.saver.save(self.step, &self.stepper, &mut self.log)?;
        self.log.events.flush()?;
        Ok(Outcome::Stopped { step: self.step })
    }

    /// Ends a run between two steps, because a process has no batch for the next one: this process, for the reason in `error`, or
    /// another one. The state is saved in any case, if possible.
    ///
    /// # Errors
    /// The reason why there is no batch, unless the run has to stop.
    fn end_without_batch(mut self, error: Option<DataError>) -> Result<Outcome, TrainError> {
        if error.is_some() && self.stepper.layout.processes.size() > 1 {
            // The other ranks are about to gather the status of the step. This one takes part with a blank batch, or they would
            // wait in vain.
            let blank = self.stepper.data.blank_batch(self.step, &self.stepper.partition);
            self.stepper.step(&blank, Heartbeat { no_batch: true, ..self.signals.heartbeat() })?;
        }
        let result = error.filter(|error| !matches!(error, DataError::Interrupted)).map_or(Ok(()), Err);
        match all_gather_results(&self.stepper.layout.processes, result) {
            Ok(_) => self.stopped(),
            Err(error @ TrainError::Processes(_)) => Err(error),
            Err(error) => {
                if let Err(problem) = self.saver.save(self.step, &self.stepper, &mut self.log) {
                    let text = format!("the checkpoint could not be saved either: {problem}");
                    let hint = "the last checkpoint is intact".to_owned();
                    self.log.events.notify_sinks_only(Note { step: self.step, text, hint })?;
                }
                self.log.events.flush()?;
                Err(error)
            }
        }
    }

    /// Returns whether an evaluation is due after the last step, for example because the run was resumed from the checkpoint
    /// before it. The last step is evaluated by the end of the run.
    fn lacks_evaluation(&self) -> bool {
        let recipe = &self.stepper.recipe;
        let is_due = self.step > 0 && self.step.is_multiple_of(recipe.evaluate.every);
        is_due && self.step < recipe.train.steps && !self.log.has_evaluated(self.step)
    }
}
