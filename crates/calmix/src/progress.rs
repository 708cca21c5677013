//! The progress of a run. The command itself shows the result as a table.

use std::io::{self, IsTerminal, Stderr};
use std::time::{Duration, Instant};

use calmix_metrics::evaluate::Evaluation;
use calmix_recipe::Recipe;
use calmix_run::error::RunError;
use calmix_run::events::{Event, Pace};
use calmix_run::sink::{Progress, Sink, WorkProgress};

use crate::format::{counted, grouped, rough_time};
use crate::quicker::quicker;
use crate::terminal::{self, status, warn_at_once};

/// The remaining seconds from which a warning suggests a quicker run.
const DAY: f64 = 86_400.0;

/// Shows the events of a run, or only its warnings.
#[derive(Debug)]
pub struct ProgressSink {
    bar: Progress<Stderr>,
    steps: u64,
    is_quiet: bool,
    /// The recipe of the run, to suggest a quicker one; `None` once the warning was shown.
    recipe: Option<Box<Recipe>>,
    /// Whether the user resumes the run: then a start at the first step is announced, too.
    is_resumed: bool,
    first_step: u64,
    /// When the progress of features or heads was last shown.
    shown: Instant,
    shown_every: Duration,
}

impl ProgressSink {
    /// Shows the progress of a run of this recipe; only warnings if it is quiet.
    pub fn new(recipe: &Recipe, is_quiet: bool) -> Self {
        let steps = recipe.steps();
        let bar = Progress::new(io::stderr(), terminal::progress_style(), steps);
        let every = if io::stderr().is_terminal() { 1 } else { 10 };
        Self {
            bar,
            steps,
            is_quiet,
            recipe: Some(Box::new(recipe.clone())),
            is_resumed: false,
            first_step: 0,
            shown: Instant::now(),
            shown_every: Duration::from_secs(every),
        }
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

    /// Shows how far work has come and how long it will take, from time to time.
    fn show(&mut self, work: &str, units: &str, progress: &WorkProgress) {
        if self.is_quiet || self.shown.elapsed() < self.shown_every {
            return;
        }
        self.shown = Instant::now();
        let WorkProgress { done, total, seconds } = *progress;
        let rate = done as f64 / seconds.max(1e-9);
        let left = rough_time(total.saturating_sub(done) as f64 / rate.max(1e-9));
        terminal::status_in_place(&format!(
            "{work}: {} of {} {units}, {} per second, {left} left",
            grouped(done),
            grouped(total),
            grouped(rate.round() as u64)
        ));
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

    fn first_pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        self.warn_if_days(pace);
        if self.is_quiet { Ok(()) } else { self.bar.first_pace(pace) }
    }

    fn features(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        self.show("features", "views", progress);
        Ok(())
    }

    fn heads(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        // Without steps, every head is one piece of work.
        let units = if self.steps == 0 { "trainings" } else { "steps" };
        self.show("heads", units, progress);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.bar.flush()
    }
}
