//! Sinks receive the events of a run and write them, each in its format.
//!
//! | sink | gets | for |
//! |---|---|---|
//! | [`JsonLines`] | events and pace, each in a file of its own | programs, reports and inspection |
//! | [`TensorBoard`] | every number of both | TensorBoard and tools that read its files |
//! | [`Progress`] | a selection of both | a terminal, or the log of a job |
//!
//! Sinks open no files and read no clock: they are given writers, and times where they need them. So tests are deterministic.

mod jsonl;
mod progress;
mod tensorboard;

use std::io;

pub use jsonl::JsonLines;
pub use progress::{Progress, ProgressStyle, phrase};
pub use tensorboard::{Hyperparameter, TensorBoard, numbers};

use crate::error::RunError;
use crate::events::{Event, Pace};

/// The progress of work before the first event of a run: computing features, or training heads on them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkProgress {
    /// Views that are computed, or steps that all heads have taken together.
    pub done: u64,
    /// Views or steps in total.
    pub total: u64,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Receives the events and the pace of a run.
pub trait Sink {
    /// Takes an event. Events are the same in every repetition of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    fn event(&mut self, event: &Event) -> Result<(), RunError>;

    /// Takes the pace of the run.
    ///
    /// # Errors
    /// If it cannot be written.
    fn pace(&mut self, pace: &Pace) -> Result<(), RunError>;

    /// Takes the step at which the run starts or resumes, before that step.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begins(&mut self, step: u64) -> Result<(), RunError> {
        let _ = step;
        Ok(())
    }

    /// Takes the pace of the first steps, before that of the first interval, so that a user soon sees the time left.
    ///
    /// # Errors
    /// If it cannot be written.
    fn first_pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        let _ = pace;
        Ok(())
    }

    /// Takes the progress of the features of a frozen backbone, which are computed before the first step.
    ///
    /// # Errors
    /// If it cannot be written.
    fn features(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        let _ = progress;
        Ok(())
    }

    /// Takes the progress of training heads on frozen features.
    ///
    /// # Errors
    /// If it cannot be written.
    fn heads(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        let _ = progress;
        Ok(())
    }

    /// Flushes everything to the operating system.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> Result<(), RunError>;
}

/// Adds the name of the file or device to an error.
fn at<T>(what: &'static str, written: io::Result<T>) -> Result<T, RunError> {
    written.map_err(|source| RunError::Sink { what, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_that_may_pass_are_dropped() {
        let error = |kind: io::ErrorKind| RunError::Sink { what: "timing.jsonl", source: kind.into() };
        assert!(error(io::ErrorKind::TimedOut).unless_transient().is_ok());
        assert!(error(io::ErrorKind::StorageFull).unless_transient().is_err());
    }
}
