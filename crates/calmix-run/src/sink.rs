//! Sinks, which receive the events of a run and write them in their formats.
//!
//! | sink | gets | for |
//! |---|---|---|
//! | [`PaceLines`] | the pace | programs that read `timing.jsonl` |
//! | [`TensorBoard`] | every number of both | TensorBoard and tools that read its files |
//! | [`Progress`] | a selection of both | a terminal, or the log of a job |
//!
//! Sinks open no files and read no clock: writers and times are passed to them. This makes tests deterministic.

mod progress;
mod tensorboard;

use std::io::{self, Write};

use calmix_metrics::predictions::EvalSet;

pub use progress::{Progress, ProgressStyle, phrase};
pub use tensorboard::{Hyperparameter, TensorBoard, numbers};

use crate::error::RunError;
use crate::events::{Event, Pace};

/// Work of a run other than its training steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Computing the features of a frozen backbone, counted in views.
    Features,
    /// Training heads, counted in the steps of all heads together.
    HeadSteps,
    /// Training heads without steps, counted in heads.
    Heads,
    /// Fitting and evaluating the calibrators of heads, which has no count.
    Calibrators,
    /// Predicting the samples of a split.
    Evaluation(EvalSet),
    /// Computing confidence intervals, counted in bootstrap resamples.
    Intervals,
    /// Predicting unlabelled samples whose class is known.
    PseudoLabels,
}

/// The progress of some work of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkProgress {
    /// The kind of work, which determines the unit of the count.
    pub work: Work,
    /// The completed count.
    pub done: u64,
    /// The total; 0 if the work has no count.
    pub total: u64,
    /// Seconds since the start of this work.
    pub seconds: f64,
}

/// A receiver for the events and the pace of a run.
pub trait Sink {
    /// Receives an event. Events are the same in every repetition of a run.
    fn event(&mut self, _: &Event) -> Result<(), RunError> {
        Ok(())
    }

    /// Receives the pace of the run.
    fn pace(&mut self, _: &Pace) -> Result<(), RunError> {
        Ok(())
    }

    /// Receives the first step of the run, or of its resumption, before that step.
    fn started(&mut self, _: u64) -> Result<(), RunError> {
        Ok(())
    }

    /// Receives the pace between two intervals, so that a user soon sees the time left and the terminal keeps moving.
    fn current_pace(&mut self, _: &Pace) -> Result<(), RunError> {
        Ok(())
    }

    /// Receives the progress of work other than training steps, before, between or after them.
    fn work(&mut self, _: &WorkProgress) -> Result<(), RunError> {
        Ok(())
    }

    /// Flushes all output to the operating system.
    fn flush(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// A sink that appends the pace to `timing.jsonl`, one JSON object per line.
#[derive(Debug)]
pub struct PaceLines<W>(pub W);

impl<W: Write> PaceLines<W> {
    /// The file name for errors.
    const FILE: &str = "timing.jsonl";
}

impl<W: Write> Sink for PaceLines<W> {
    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        let mut line = at(Self::FILE, serde_json::to_vec(pace).map_err(Into::into))?;
        line.push(b'\n');
        // In a single write, so that an unbuffered writer is called once per line.
        at(Self::FILE, self.0.write_all(&line))
    }

    fn flush(&mut self) -> Result<(), RunError> {
        at(Self::FILE, self.0.flush())
    }
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
