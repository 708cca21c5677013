//! Event files that TensorBoard reads.
//!
//! The format is a stream of framed protocol-buffer messages, of which a scalar needs five fields: they are
//! written by hand here. The crates for the format were last released in 2022 to 2024, and prost would bring five more.
//!
//! Every number of an event becomes a scalar, named by its path in the event's JSON, so that no field can be
//! forgotten; only lists (reliability bins, accuracy by class) stay in the JSON, since a curve for each of a thousand
//! classes would bury the others:
//!
//! | event | tags |
//! |---|---|
//! | step | `train/loss/total`, `train/learning_rate`, `train/pseudo/ece_15`, `train/impurity_of/hard`, … |
//! | evaluation | `test/ema/metrics/error`, `test/ema/metrics/confidence_gap`, `test/ema/calibrated/temperature`, … |
//! | finished | `selected/last/metrics/error`, `pseudo/error`, … |
//! | pace | `pace/images_per_second`, … |
//!
//! A number that is not finite has no place in JSON, and none here. The settings of the run are the hyperparameters of
//! TensorBoard's page HPARAMS, which shows runs side by side.

mod hparams;
mod record;
mod scalars;

use std::io::Write;
use std::time::Duration;

use super::{Sink, at};
use crate::error::RunError;
use crate::events::{Event, Pace};
pub use hparams::Hyperparameter;
use record::EventRecord;
pub use scalars::numbers;

const WHAT: &str = "the TensorBoard file";

/// Writes one event file.
///
/// The name of the file must contain `tfevents`; TensorBoard reads the files of a folder in the order of their
/// names, so a later file needs a later name: `events.out.tfevents.<seconds since 1970, ten digits>.<anything>`.
#[derive(Debug)]
pub struct TensorBoard<W, C> {
    file: W,
    clock: C,
}

impl<W: Write, C: FnMut() -> Duration> TensorBoard<W, C> {
    /// Begins a file. `clock` returns the time since 1970, which TensorBoard can show on its axis.
    ///
    /// A process that resumes after `resumed_after` updates begins a new file; TensorBoard then drops what
    /// earlier files contain about later steps.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(file: W, clock: C, resumed_after: Option<u64>) -> Result<Self, RunError> {
        let mut sink = Self { file, clock };
        sink.write(0, EventRecord::version)?;
        if let Some(step) = resumed_after {
            sink.write(step.saturating_add(1), EventRecord::session_start)?;
        }
        Ok(sink)
    }

    /// Writes the settings of the run, for the page HPARAMS.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn hyperparameters(&mut self, settings: &[(String, Hyperparameter)]) -> Result<(), RunError> {
        let started = (self.clock)();
        self.write(0, |message| message.plugin(hparams::START, &hparams::session_start(settings, started)))
    }

    fn scalars(&mut self, step: u64, scalars: &[(String, f32)]) -> Result<(), RunError> {
        if scalars.is_empty() {
            return Ok(());
        }
        self.write(step, |message| message.scalars(scalars))
    }

    fn write(&mut self, step: u64, body: impl FnOnce(&mut EventRecord)) -> Result<(), RunError> {
        let mut message = EventRecord::new((self.clock)(), step);
        body(&mut message);
        at(WHAT, self.file.write_all(&message.framed()))
    }
}

impl<W: Write, C: FnMut() -> Duration> Sink for TensorBoard<W, C> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        let scalars = at(WHAT, scalars::of_event(event).map_err(Into::into))?;
        self.scalars(event.step(), &scalars)?;
        if let Event::Finished(_) = event {
            let ended = (self.clock)();
            self.write(0, |message| message.plugin(hparams::END, &hparams::session_end(ended)))?;
        }
        Ok(())
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        let scalars = at(WHAT, scalars::of_pace(pace).map_err(Into::into))?;
        self.scalars(pace.step, &scalars)
    }

    fn flush(&mut self) -> Result<(), RunError> {
        at(WHAT, self.file.flush())
    }
}
