//! Sinks that steer or overhear a run.

use std::sync::atomic::{AtomicBool, Ordering};

use calmix_run::error::RunError;
use calmix_run::events::Event;
use calmix_run::sink::Sink;

/// Requests a run to stop after a number of logged steps.
pub struct StopAt<'a> {
    /// The step whose event requests the stop.
    pub steps: u64,
    /// The flag that the run watches.
    pub stop: &'a AtomicBool,
}

impl Sink for StopAt<'_> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        if matches!(event, Event::Step(step) if step.step >= self.steps) {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Remembers notes.
pub struct Notes<'a>(pub &'a mut Vec<String>);

impl Sink for Notes<'_> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        if let Event::Note(note) = event {
            self.0.push(note.text.clone());
        }
        Ok(())
    }
}
