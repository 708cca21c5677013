//! What is shown while a run trains. The end is shown by the command itself, as a table.

use std::io::{self, Stderr};

use calmix::train::events::{Evaluation, Event, Pace};
use calmix::train::sink::{Progress, Sink, SinkError};

use crate::terminal;

/// Passes on what matters while one waits.
#[derive(Debug)]
pub(crate) struct Shown {
    bar: Progress<Stderr>,
    is_quiet: bool,
}

impl Shown {
    /// Shows a run that ends after `steps` steps; only its warnings, if it is to be quiet.
    pub(crate) fn new(steps: u64, is_quiet: bool) -> Self {
        Self { bar: Progress::new(io::stderr(), terminal::look(), steps), is_quiet }
    }
}

impl Sink for Shown {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Note(_) => self.bar.event(event),
            Event::Finished(_) => Ok(()),
            _ if self.is_quiet => Ok(()),
            Event::Step(_) => self.bar.event(event),
            // Without its intervals it is no result yet, and only remembered.
            Event::Evaluation(seen) => {
                let seen = Evaluation { intervals: None, ..Evaluation::clone(seen) };
                self.bar.event(&Event::Evaluation(Box::new(seen)))
            }
        }
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), SinkError> {
        if self.is_quiet { Ok(()) } else { self.bar.pace(pace) }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.bar.flush()
    }
}
