//! The log of a run: which steps and evaluations it has, and the pace.

use std::time::{Duration, Instant};

use calmix_data::loader::{Counters, SkippedSample};
use calmix_engine::learn::StepOutput;
use calmix_lifecycle::evaluation::{EvalOutput, EvaluationLog};
use calmix_recipe::Recipe;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Collectives;
use calmix_run::events::{Event, Loss, Note, Pace, Pacer, Reading, Step};

use super::checkpoint_files::RunProgress;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::ParallelLayout;
use crate::trainer::step::step_stats::{LogWindow, StepStats};
use crate::trainer::step::stepper::{StepResult, Stepper};

/// The events of a run, and the state needed to write the next ones.
pub(crate) struct RunLog<'a> {
    pub(crate) events: EventWriter<'a>,
    pub(crate) progress: RunProgress,
    evaluations: EvaluationLog,
}

impl<'a> RunLog<'a> {
    /// Continues with the progress in a checkpoint.
    pub(crate) fn new(events: EventWriter<'a>, progress: RunProgress, recipe: &Recipe) -> Self {
        Self { events, progress, evaluations: EvaluationLog::new(recipe) }
    }

    pub(crate) fn has_evaluated(&self, step: u64) -> bool {
        self.progress.history.iter().any(|seen| seen.step == step)
    }

    /// Logs the result of a step; in full if `is_logged`.
    pub(crate) fn step(
        &mut self,
        step: u64,
        result: StepResult,
        is_logged: bool,
        stepper: &Stepper,
    ) -> Result<(), TrainError> {
        let (StepResult::Trained { status, .. } | StepResult::Skipped { status, .. }) = &result else {
            return Ok(());
        };
        let skip =
            |(id, problem): &(u64, String)| SkippedSample { row: 0, id: *id, problem: problem.clone() };
        let skipped: Vec<SkippedSample> = status.skipped.iter().map(skip).collect();
        let first = self.progress.tally.skipped == 0;
        // A batch fits into memory, so its number of rows fits into a usize.
        let corrupt = stepper.recipe.loader.corrupt();
        self.progress.tally.add(status.seen as usize, &skipped, corrupt)?;
        match result {
            StepResult::NoBatch => {}
            StepResult::Skipped { problem, .. } => {
                let hint = "if it happens again, lower the learning rate, clip the gradient or use f32";
                let note = Note { step, text: problem, hint: hint.to_owned() };
                self.events.event(&Event::Note(note))?;
            }
            StepResult::Trained { rate, output, stats, .. } => {
                self.progress.window.add(&stats, output.updated);
                let window =
                    if is_logged { std::mem::take(&mut self.progress.window) } else { LogWindow::default() };
                let event = Step {
                    skipped: Some(skipped.len() as u64).filter(|&count| count > 0),
                    ..step_event(step, rate, &output, (&stats, &window), stepper)
                };
                let note = self.progress.starvation.update(&event);
                if is_logged {
                    self.events.event(&Event::Step(Box::new(event)))?;
                }
                if let Some(note) = note {
                    self.events.event(&Event::Note(note))?;
                }
            }
        }
        if let Some(skipped) = skipped.first().filter(|_| first) {
            let note = corrupt_note(step, skipped);
            self.events.event(&Event::Note(note))?;
        }
        Ok(())
    }

    /// Logs the predictions and the metrics of an evaluation after `step` steps.
    pub(crate) fn evaluation(&mut self, step: u64, output: &EvalOutput) -> Result<(), TrainError> {
        Ok(self.evaluations.write(step, output, &mut self.progress.history, &mut self.events)?)
    }
}

/// Returns the event of a step that was trained on.
fn step_event(
    step: u64,
    rate: f64,
    output: &StepOutput,
    (stats, window): (&StepStats, &LogWindow),
    stepper: &Stepper,
) -> Step {
    let terms = stepper.method.loss_terms();
    let mixes = Some(stats.mixes).filter(|&mixes| mixes > 0);
    let has_unlabelled = stepper.partition.unlabelled > 0;
    let loss = Loss::of(output.total, terms.iter().zip(&output.losses), has_unlabelled, mixes.is_some());
    Step {
        learning_rate: rate,
        gradient_norm: Some(output.gradient_norm as f32),
        utilisation: stats.feedback.utilisation.mean().filter(|_| stepper.method.base.has_unlabelled_loss()),
        impurity: window.pseudo.impurity(),
        impurity_of: window.pseudo.impurity_of(),
        margin_auroc: window.pseudo.margin_auroc(),
        pseudo: window.pseudo.metrics(),
        margin: stats.margin,
        mixes,
        overflows: Some(window.overflows).filter(|&count| count > 0),
        ..Step::new(step, loss)
    }
}

/// Returns the warning about the first corrupt sample of a run; further ones are only counted.
fn corrupt_note(step: u64, first: &SkippedSample) -> Note {
    Note {
        step,
        text: format!("sample {} is corrupt ({}); another sample replaces it", first.id, first.problem),
        hint: "repair the dataset; `calmix prepare` shows how many samples are corrupt".to_owned(),
    }
}

/// The clocks and counters of a run.
pub(crate) struct Timer {
    began: Instant,
    pacer: Pacer,
    exchanged: (u64, Duration, Collectives),
    first_step: u64,
    /// The time of the next estimate of the pace within an interval.
    next_estimate: Duration,
}

/// The time between two estimates within an interval.
const ESTIMATE_INTERVAL: Duration = Duration::from_secs(1);

impl Timer {
    pub(crate) fn new(layout: &ParallelLayout, first_step: u64, last_step: u64) -> Self {
        let pacer = Pacer::new(first_step, last_step);
        let (began, exchanged) = (Instant::now(), exchanged(layout));
        Self { began, pacer, exchanged, first_step, next_estimate: ESTIMATE_INTERVAL }
    }

    /// Returns the pace since the last interval, and starts a new one.
    pub(crate) fn pace(&mut self, step: u64, layout: &ParallelLayout, counters: Counters) -> Pace {
        let reading = self.reading(step, layout, counters);
        self.next_estimate = reading.elapsed + ESTIMATE_INTERVAL;
        self.pacer.step(reading.elapsed);
        self.pacer.pace(reading)
    }

    /// Returns the pace of the interval so far, from time to time. The first step alone is not representative, since libtorch
    /// warms up in it.
    pub(crate) fn current_pace(
        &mut self,
        step: u64,
        layout: &ParallelLayout,
        counters: Counters,
    ) -> Option<Pace> {
        let reading = self.reading(step, layout, counters);
        self.pacer.step(reading.elapsed);
        if step < self.first_step + 2 || reading.elapsed < self.next_estimate {
            return None;
        }
        self.next_estimate = reading.elapsed + ESTIMATE_INTERVAL;
        // Use a copy, so that the interval itself continues.
        Some(self.pacer.clone().pace(reading))
    }

    fn reading(&self, step: u64, layout: &ParallelLayout, counters: Counters) -> Reading {
        let (now, before) = (exchanged(layout), self.exchanged);
        let since = (now.0 - before.0, now.1.saturating_sub(before.1), now.2.since(before.2));
        Reading {
            step,
            // Images of all processes: each micro-batch has the same number.
            images: counters.images * layout.all() as u64 / layout.local().len().max(1) as u64,
            elapsed: self.began.elapsed(),
            waited: counters.waited,
            exchanged: (layout.processes.size() > 1).then_some(since),
        }
    }
}

/// Returns the communication of this process: bytes sent, time, collectives.
fn exchanged(layout: &ParallelLayout) -> (u64, Duration, Collectives) {
    (layout.processes.sent(), layout.processes.waited(), layout.collectives())
}
