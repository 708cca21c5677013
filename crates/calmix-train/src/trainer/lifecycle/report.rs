//! What a run reports of its steps: events, notes and its pace.

use std::time::{Duration, Instant};

use calmix_core::loss::{LossKind, LossTerm};
use calmix_data::loader::{Counters, SkippedSample};
use calmix_engine::learn::StepOutput;
use calmix_run::collectives::Collectives;
use calmix_run::events::{Event, Loss, Note, Pace, Pacer, Reading, Step};

use super::train_loop::TrainLoop;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::ParallelLayout;
use crate::trainer::step::step_stats::{LogWindow, StepStats};
use crate::trainer::step::stepper::StepResult;

impl TrainLoop<'_> {
    /// Reports a step; in full where it `logs`.
    pub(crate) fn report(&mut self, result: StepResult, logs: bool) -> Result<(), TrainError> {
        let (StepResult::Learnt { status, .. } | StepResult::Undone { status, .. }) = &result else {
            return Ok(());
        };
        let skip =
            |(id, problem): &(u64, String)| SkippedSample { row: 0, id: *id, problem: problem.clone() };
        let skipped: Vec<SkippedSample> = status.skipped.iter().map(skip).collect();
        let first = self.progress.tally.skipped == 0;
        // A batch has as many rows as fit into memory.
        let corrupt = self.stepper.recipe.loader.corrupt();
        self.progress.tally.add(status.seen as usize, &skipped, corrupt)?;
        match result {
            StepResult::Lost => {}
            StepResult::Undone { problem, .. } => {
                let hint = "if it happens again, lower the learning rate, clip the gradient or take f32";
                let note = Note { step: self.step, text: problem, hint: hint.to_owned() };
                self.events.event(&Event::Note(note))?;
            }
            StepResult::Learnt { rate, output, stats, .. } => {
                self.progress.window.add(&stats, output.moved);
                let window =
                    if logs { std::mem::take(&mut self.progress.window) } else { LogWindow::default() };
                let step = self.step_event(rate, &output, (&stats, &window), skipped.len() as u64);
                let note = self.progress.starvation.see(&step);
                if logs {
                    self.events.event(&Event::Step(Box::new(step)))?;
                }
                if let Some(note) = note {
                    self.events.event(&Event::Note(note))?;
                }
            }
        }
        if let Some(skipped) = skipped.first().filter(|_| first) {
            let note = corrupt_note(self.step, skipped);
            self.events.event(&Event::Note(note))?;
        }
        Ok(())
    }

    fn step_event(
        &self,
        rate: f64,
        output: &StepOutput,
        (stats, window): (&StepStats, &LogWindow),
        skipped: u64,
    ) -> Step {
        let terms = self.stepper.method.loss_terms();
        let mixes = Some(stats.mixes).filter(|&mixes| mixes > 0);
        let mut loss = Loss { total: output.total as f32, ..Loss::default() };
        for (LossTerm { kind, weight }, value) in terms.iter().zip(&output.losses) {
            let value = (weight * value) as f32;
            match kind {
                LossKind::Labelled => loss.labelled = value,
                LossKind::Unlabelled => {
                    loss.unlabelled = Some(value).filter(|_| self.stepper.partition.unlabelled > 0);
                }
                LossKind::Mixup(_) => loss.mix = Some(value).filter(|_| mixes.is_some()),
                further => {
                    loss.further.insert(further.name().replace(' ', "_"), value);
                }
            }
        }
        Step {
            learning_rate: rate,
            gradient_norm: Some(output.gradient_norm as f32),
            utilisation: stats
                .feedback
                .in_use
                .mean()
                .filter(|_| self.stepper.method.base.weighs_unlabelled()),
            impurity: window.pseudo.impurity(),
            impurity_of: window.pseudo.impurity_of(),
            pseudo: window.pseudo.figures(),
            margin: stats.margin,
            mixes,
            skipped: Some(skipped).filter(|&count| count > 0),
            overflows: Some(window.overflows).filter(|&count| count > 0),
            ..Step::new(self.step, loss)
        }
    }
}

/// The first corrupt sample of a run; from then on they are only counted.
fn corrupt_note(step: u64, first: &SkippedSample) -> Note {
    Note {
        step,
        text: format!("sample {} is corrupt ({}), and another took its place", first.id, first.problem),
        hint: "repair the dataset, or see how many there are with `prepare`".to_owned(),
    }
}

/// Reads the clocks and counters of a run.
pub(crate) struct Timer {
    began: Instant,
    pacer: Pacer,
    exchanged: (u64, Duration, Collectives),
    first_step: u64,
    /// When people are to hear next how long it takes; never again once they have heard of a whole interval.
    next_estimate: Option<Duration>,
}

/// From one estimate of the time left to the next, before the first interval is over.
const ESTIMATES: Duration = Duration::from_secs(2);

impl Timer {
    pub(crate) fn new(layout: &ParallelLayout, first_step: u64, last_step: u64) -> Self {
        let pacer = Pacer::new(first_step, last_step);
        let (began, exchanged) = (Instant::now(), exchanged(layout));
        Self { began, pacer, exchanged, first_step, next_estimate: Some(ESTIMATES) }
    }

    /// The pace since it was last asked for.
    pub(crate) fn pace(&mut self, step: u64, layout: &ParallelLayout, counters: Counters) -> Pace {
        self.next_estimate = None;
        let reading = self.reading(step, layout, counters);
        self.pacer.step(reading.elapsed);
        self.pacer.pace(reading)
    }

    /// The pace of the first steps, now and then, until an interval is over. The first step alone says little, since
    /// libtorch warms up in it.
    pub(crate) fn first_pace(
        &mut self,
        step: u64,
        layout: &ParallelLayout,
        counters: Counters,
    ) -> Option<Pace> {
        let next = self.next_estimate?;
        let reading = self.reading(step, layout, counters);
        self.pacer.step(reading.elapsed);
        if step < self.first_step + 2 || reading.elapsed < next {
            return None;
        }
        self.next_estimate = Some(reading.elapsed + ESTIMATES);
        // A copy: the first interval still begins with the first step.
        Some(self.pacer.clone().pace(reading))
    }

    fn reading(&self, step: u64, layout: &ParallelLayout, counters: Counters) -> Reading {
        let (now, before) = (exchanged(layout), self.exchanged);
        let since = (now.0 - before.0, now.1.saturating_sub(before.1), now.2.since(before.2));
        Reading {
            step,
            images: counters.images * layout.processes.size() as u64,
            elapsed: self.began.elapsed(),
            waited: counters.waited,
            exchanged: (layout.processes.size() > 1).then_some(since),
        }
    }
}

/// What this process has exchanged with the others: bytes sent, time, collectives.
fn exchanged(layout: &ParallelLayout) -> (u64, Duration, Collectives) {
    (layout.processes.sent(), layout.processes.waited(), layout.collectives())
}
