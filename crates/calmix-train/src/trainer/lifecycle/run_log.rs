//! Decides what a run logs of its steps and evaluations, and when.

use calmix_data::loader::SkippedSample;
use calmix_engine::learn::StepOutput;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_lifecycle::evaluation::evaluation_log::EvaluationLog;
use calmix_recipe::Recipe;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::{Event, Loss, Note, Step};

use super::checkpoint_files::RunProgress;
use crate::trainer::error::TrainError;
use crate::trainer::step::step_stats::{LogWindow, StepStats};
use crate::trainer::step::stepper::{StepResult, Stepper};

/// The events of a run, and the state that is needed to write the next ones.
pub(crate) struct RunLog<'a> {
    pub(crate) events: EventWriter<'a>,
    pub(crate) progress: RunProgress,
    evaluations: EvaluationLog,
}

impl<'a> RunLog<'a> {
    /// Continues with the progress that a checkpoint has.
    pub(crate) fn new(events: EventWriter<'a>, progress: RunProgress, recipe: &Recipe) -> Self {
        Self { events, progress, evaluations: EvaluationLog::new(recipe) }
    }

    /// Whether a step was evaluated.
    pub(crate) fn has_evaluated(&self, step: u64) -> bool {
        self.progress.history.iter().any(|seen| seen.step == step)
    }

    /// Writes the result of a step; in full if it `logs`.
    pub(crate) fn step(
        &mut self,
        step: u64,
        result: StepResult,
        logs: bool,
        stepper: &Stepper,
    ) -> Result<(), TrainError> {
        let (StepResult::Learnt { status, .. } | StepResult::Undone { status, .. }) = &result else {
            return Ok(());
        };
        let skip =
            |(id, problem): &(u64, String)| SkippedSample { row: 0, id: *id, problem: problem.clone() };
        let skipped: Vec<SkippedSample> = status.skipped.iter().map(skip).collect();
        let first = self.progress.tally.skipped == 0;
        // A batch has as many rows as fit into memory.
        let corrupt = stepper.recipe.loader.corrupt();
        self.progress.tally.add(status.seen as usize, &skipped, corrupt)?;
        match result {
            StepResult::Lost => {}
            StepResult::Undone { problem, .. } => {
                let hint = "if it happens again, lower the learning rate, clip the gradient or use f32";
                let note = Note { step, text: problem, hint: hint.to_owned() };
                self.events.event(&Event::Note(note))?;
            }
            StepResult::Learnt { rate, output, stats, .. } => {
                self.progress.window.add(&stats, output.moved);
                let window =
                    if logs { std::mem::take(&mut self.progress.window) } else { LogWindow::default() };
                let event = Step {
                    skipped: Some(skipped.len() as u64).filter(|&count| count > 0),
                    ..step_event(step, rate, &output, (&stats, &window), stepper)
                };
                let note = self.progress.starvation.see(&event);
                if logs {
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

    /// Writes the predictions and the metrics of an evaluation after `step` steps.
    pub(crate) fn evaluation(&mut self, step: u64, output: &EvalOutput) -> Result<(), TrainError> {
        Ok(self.evaluations.write(step, output, &mut self.progress.history, &mut self.events)?)
    }
}

/// The event of a step that was trained on.
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
        utilisation: stats.feedback.in_use.mean().filter(|_| stepper.method.base.weighs_unlabelled()),
        impurity: window.pseudo.impurity(),
        impurity_of: window.pseudo.impurity_of(),
        pseudo: window.pseudo.metrics(),
        margin: stats.margin,
        mixes,
        overflows: Some(window.overflows).filter(|&count| count > 0),
        ..Step::new(step, loss)
    }
}

/// The warning about the first corrupt sample of a run; further ones are only counted.
fn corrupt_note(step: u64, first: &SkippedSample) -> Note {
    Note {
        step,
        text: format!("sample {} is corrupt ({}); another sample replaces it", first.id, first.problem),
        hint: "repair the dataset; `calmix prepare` shows how many samples are corrupt".to_owned(),
    }
}
