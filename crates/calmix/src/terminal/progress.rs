//! The progress of a run. The command itself shows the result as a table.

use calmix_metrics::evaluate::Evaluation;
use calmix_recipe::Recipe;
use calmix_run::error::RunError;
use calmix_run::events::{Event, Pace};
use calmix_run::sink::{Progress, Sink, WorkProgress};

use crate::output::format::{counted, grouped, rough_time};
use crate::output::quicker::quicker;
use crate::terminal::{self, ProgressStream, status, warn_at_once};

/// The remaining seconds from which a warning suggests a quicker run.
const DAY: f64 = 86_400.0;

/// Shows the events of a run, or only its warnings.
#[derive(Debug)]
pub struct ProgressSink {
    bar: Progress<ProgressStream>,
    steps: u64,
    is_quiet: bool,
    /// The recipe of the run, to suggest a quicker one; `None` once the warning was shown.
    recipe: Option<Box<Recipe>>,
    /// Whether the user resumes the run: then a start at the first step is announced, too.
    is_resumed: bool,
    first_step: u64,
}

impl ProgressSink {
    /// Shows the progress of a run of this recipe; only warnings if it is quiet.
    pub fn new(recipe: &Recipe, is_quiet: bool) -> Self {
        let steps = recipe.steps();
        let sample = if recipe.has_vectors() { "vector" } else { "image" };
        let bar = Progress::new(ProgressStream, terminal::progress_style(), steps).of(sample);
        let recipe = Some(Box::new(recipe.clone()));
        Self { bar, steps, is_quiet, recipe, is_resumed: false, first_step: 0 }
    }

    /// Announces where the run continues, also at its first step.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { is_resumed: true, ..self }
    }

    /// Warns once if the run takes days.
    fn warn_if_days(&mut self, pace: &Pace) {
        // The first step takes longer than the others.
        let is_measured = pace.step >= self.first_step + 2;
        let left = pace.left_seconds.filter(|&left| left >= DAY && is_measured);
        if let Some((left, recipe)) = left.and_then(|left| Some((left, self.recipe.take()?))) {
            let left = rough_time(left);
            let quicker = quicker(&recipe);
            warn_at_once(&format!("at this pace the run takes {left} more (Ctrl-C saves it); {quicker}"));
        }
    }
}

impl Sink for ProgressSink {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        match event {
            Event::Note(_) => self.bar.event(event),
            Event::Finished(_) => Ok(()),
            _ if self.is_quiet => Ok(()),
            Event::Step(_) => self.bar.event(event),
            // Without intervals: the bar then does not show the evaluation as a result.
            Event::Evaluation(seen) => {
                let seen = Evaluation { intervals: None, ..Evaluation::clone(seen) };
                self.bar.event(&Event::Evaluation(Box::new(seen)))
            }
        }
    }

    fn begins(&mut self, step: u64) -> Result<(), RunError> {
        self.first_step = step;
        let steps = counted(self.steps, "step");
        match step {
            _ if self.is_quiet => {}
            0 if self.is_resumed && self.steps == 0 => status("starting from the beginning"),
            0 if self.is_resumed => status(&format!("no checkpoint yet: starting at the first of {steps}")),
            0 => {}
            _ => status(&format!("continuing after {} of {steps}", grouped(step))),
        }
        Ok(())
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        self.warn_if_days(pace);
        if self.is_quiet { Ok(()) } else { self.bar.pace(pace) }
    }

    fn current_pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        self.warn_if_days(pace);
        if self.is_quiet { Ok(()) } else { self.bar.current_pace(pace) }
    }

    fn work(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        if self.is_quiet { Ok(()) } else { self.bar.work(progress) }
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.bar.flush()
    }
}
