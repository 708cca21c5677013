//! What a run writes of its evaluations.

use std::collections::BTreeMap;

use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::Recipe;
use calmix_run::error::RunError;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::{Event, Note};

use crate::evaluation::EvalOutput;

/// Writes evaluations, and which warnings about them the user has.
#[derive(Debug)]
pub struct EvaluationLog {
    /// The number of corrupt samples of each split that the user was warned of.
    left_out: BTreeMap<EvalSet, u64>,
    /// The number of evaluations whose predictions are kept.
    keep_predictions: u32,
}

impl EvaluationLog {
    /// The log of a run with this recipe.
    pub fn new(recipe: &Recipe) -> Self {
        Self { left_out: BTreeMap::new(), keep_predictions: recipe.evaluate.keep_predictions }
    }

    /// Writes the predictions and the metrics of an evaluation after `step` steps, and adds the metrics to the history.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(
        &mut self,
        step: u64,
        output: &EvalOutput,
        history: &mut Vec<Evaluation>,
        events: &mut EventWriter<'_>,
    ) -> Result<(), RunError> {
        for seen in &output.predictions {
            events.predictions(seen)?;
        }
        self.note_left_out(output, events)?;
        for evaluation in &output.evaluations {
            events.event(&Event::Evaluation(Box::new(evaluation.clone())))?;
            history.push(evaluation.clone().without_lists());
        }
        events.remove_old_predictions(step, self.keep_predictions)
    }

    /// Warns how many samples an evaluation leaves out, whenever that number changes.
    fn note_left_out(&mut self, output: &EvalOutput, events: &mut EventWriter<'_>) -> Result<(), RunError> {
        for seen in &output.evaluations {
            let told = self.left_out.insert(seen.split, seen.skipped).unwrap_or(0);
            if seen.skipped == told {
                continue;
            }
            let split = seen.split.name();
            let all = seen.samples + seen.skipped;
            let first = output.corrupt.as_deref().unwrap_or_default();
            let text =
                format!("{} of {all} {split} samples are corrupt and left out ({first})", seen.skipped);
            let hint = "repair the dataset and prepare it again to evaluate all samples".to_owned();
            events.aside(Note { step: seen.step, text, hint })?;
        }
        Ok(())
    }
}
