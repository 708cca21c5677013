//! Progress of a run. The command itself shows the result, as a table.

use std::io::{self, Stderr};

use calmix::run::events::{Evaluation, Event, Pace};
use calmix::run::sink::{Progress, Sink, SinkError};

use crate::terminal;

/// Shows the events of a run, or only its warnings.
#[derive(Debug)]
pub(crate) struct ProgressSink {
    bar: Progress<Stderr>,
    is_quiet: bool,
}

impl ProgressSink {
    /// For a run of `steps` steps; shows only warnings if it is quiet.
    pub(crate) fn new(steps: u64, is_quiet: bool) -> Self {
        Self { bar: Progress::new(io::stderr(), terminal::progress_style(), steps), is_quiet }
    }
}

impl Sink for ProgressSink {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
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

    fn pace(&mut self, pace: &Pace) -> Result<(), SinkError> {
        if self.is_quiet { Ok(()) } else { self.bar.pace(pace) }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.bar.flush()
    }
}
