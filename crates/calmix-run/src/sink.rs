//! Sinks receive the events of a run and write them, each in its format.
//!
//! | sink | gets | for |
//! |---|---|---|
//! | [`JsonLines`] | events and pace, each in a file of its own | programs, and everything that is shown later |
//! | [`TensorBoard`] | every number of both | TensorBoard and what reads its files |
//! | [`Progress`] | what matters while one waits | a person at a terminal, or the log of a job |
//!
//! Sinks know neither files nor the clock: they are given writers, and times where they need them.

mod jsonl;
mod progress;
mod tensorboard;

use std::io;

use calmix_io::transient::is_transient;
pub use jsonl::JsonLines;
pub use progress::{Progress, ProgressStyle, phrase};
pub use tensorboard::{Hyperparameter, TensorBoard, numbers};

use crate::events::{Event, Pace};

/// How far the features of a frozen backbone are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureProgress {
    /// Views that were made.
    pub done: u64,
    /// Views to make.
    pub total: u64,
    /// Since when.
    pub seconds: f64,
}

/// Receives the events and the pace of a run.
pub trait Sink {
    /// Takes an event, which is the same in every repetition of the run.
    ///
    /// # Errors
    /// If it cannot be written.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;

    /// Takes the pace of the run.
    ///
    /// # Errors
    /// If it cannot be written.
    fn pace(&mut self, pace: &Pace) -> Result<(), SinkError>;

    /// Takes the step that the run begins at or goes on from, before it is made.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begins(&mut self, step: u64) -> Result<(), SinkError> {
        let _ = step;
        Ok(())
    }

    /// Takes the pace of the first steps, before that of the first interval: for people, who want to know how long it
    /// takes.
    ///
    /// # Errors
    /// If it cannot be written.
    fn first_pace(&mut self, pace: &Pace) -> Result<(), SinkError> {
        let _ = pace;
        Ok(())
    }

    /// Takes how far the features of a frozen backbone are, which are made before the first step.
    ///
    /// # Errors
    /// If it cannot be written.
    fn features(&mut self, progress: &FeatureProgress) -> Result<(), SinkError> {
        let _ = progress;
        Ok(())
    }

    /// Flushes everything to the operating system.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> Result<(), SinkError>;
}

/// A sink could not write.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write to {what}: {source}; when there is room again, the run can be resumed from its last checkpoint"
)]
pub struct SinkError {
    /// The file or device.
    pub what: &'static str,
    /// Why.
    pub source: io::Error,
}

impl SinkError {
    /// Nothing, if the storage is away for a while: what depends on the clock is not worth waiting for.
    ///
    /// # Errors
    /// This error, if it stays.
    pub fn unless_transient(self) -> Result<(), Self> {
        if is_transient(&self.source) { Ok(()) } else { Err(self) }
    }
}

/// Says where writing failed.
fn at<T>(what: &'static str, written: io::Result<T>) -> Result<T, SinkError> {
    written.map_err(|source| SinkError { what, source })
}
