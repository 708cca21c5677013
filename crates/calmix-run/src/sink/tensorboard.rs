//! Writes event files for TensorBoard.
//!
//! The format is a stream of framed protocol buffer messages, of which scalars need five fields; they are written by hand.
//! The crates for the format were last released in 2022 to 2024, and prost would add five more.
//!
//! Every number of an event becomes a scalar named by its path in the event's JSON, so that no field can be forgotten. Only
//! lists (reliability bins, accuracy by class) are left out, since curves for a thousand classes would bury the others:
//!
//! | event | tags |
//! |---|---|
//! | step | `train/loss/total`, `train/learning_rate`, `train/pseudo/ece_15`, `train/impurity_of/hard`, … |
//! | evaluation | `test/ema/metrics/error`, `test/ema/metrics/confidence_gap`, `test/ema/calibrated/temperature`, … |
//! | finished | `selected/last/metrics/error`, `pseudo/error`, … |
//! | pace | `pace/images_per_second`, … |
//!
//! Non-finite numbers are omitted, as in JSON. The settings of the run become hyperparameters on TensorBoard's HPARAMS page,
//! which shows runs side by side.

mod record;

use std::io::Write;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{Sink, at};
use crate::error::RunError;
use crate::events::{Event, Pace};
pub use record::Hyperparameter;
use record::{EventRecord, HPARAMS_END, HPARAMS_START, hparams_end, hparams_start};

const SINK_NAME: &str = "the TensorBoard file";

/// A sink that writes one event file.
///
/// The name of the file must contain `tfevents`. TensorBoard reads the files of a folder in name order, so a later file
/// needs a later name: `events.out.tfevents.<seconds since 1970, ten digits>.<anything>`.
#[derive(Debug)]
pub struct TensorBoard<W, C> {
    file: W,
    clock: C,
}

impl<W: Write, C: FnMut() -> Duration> TensorBoard<W, C> {
    /// Starts a file. `clock` returns the time since 1970, which TensorBoard can show on its axis.
    ///
    /// A process that resumes after `resumed_after` updates starts a new file; TensorBoard then drops later steps from
    /// earlier files.
    pub fn new(file: W, clock: C, resumed_after: Option<u64>) -> Result<Self, RunError> {
        let mut sink = Self { file, clock };
        sink.write(0, EventRecord::version)?;
        if let Some(step) = resumed_after {
            sink.write(step.saturating_add(1), EventRecord::session_start)?;
        }
        Ok(sink)
    }

    /// Writes the settings of the run for the HPARAMS page.
    pub fn hyperparameters(&mut self, settings: &[(String, Hyperparameter)]) -> Result<(), RunError> {
        let started = (self.clock)();
        self.write(0, |message| message.plugin(HPARAMS_START, &hparams_start(settings, started)))
    }

    /// Writes the finite numbers as scalars; writes nothing if there are none.
    fn scalars(
        &mut self,
        step: u64,
        numbers: Result<Vec<(String, f64)>, serde_json::Error>,
    ) -> Result<(), RunError> {
        let mut scalars = at(SINK_NAME, numbers.map_err(Into::into))?;
        scalars.retain(|(_, number)| number.is_finite());
        if scalars.is_empty() {
            return Ok(());
        }
        self.write(step, |message| message.scalars(&scalars))
    }

    fn write(&mut self, step: u64, body: impl FnOnce(&mut EventRecord)) -> Result<(), RunError> {
        let mut message = EventRecord::new((self.clock)(), step);
        body(&mut message);
        at(SINK_NAME, self.file.write_all(&message.framed()))
    }
}

impl<W: Write, C: FnMut() -> Duration> Sink for TensorBoard<W, C> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        self.scalars(event.step(), numbers(event))?;
        if let Event::Finished(_) = event {
            let ended = (self.clock)();
            self.write(0, |message| message.plugin(HPARAMS_END, &hparams_end(ended)))?;
        }
        Ok(())
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        self.scalars(pace.step, numbers_of("pace".to_owned(), pace))
    }

    fn flush(&mut self) -> Result<(), RunError> {
        at(SINK_NAME, self.file.flush())
    }
}

/// Lists every number of an event except its step, named by its path in the event's JSON. Non-finite numbers become NaN;
/// lists are left out.
pub fn numbers(event: &Event) -> Result<Vec<(String, f64)>, serde_json::Error> {
    let prefix = match event {
        Event::Step(_) => "train".to_owned(),
        Event::Evaluation(on) => format!("{}/{}", on.split.word(), on.model.word()),
        Event::Note(_) | Event::Finished(_) => String::new(),
    };
    numbers_of(prefix, event)
}

fn numbers_of(prefix: String, what: &impl Serialize) -> Result<Vec<(String, f64)>, serde_json::Error> {
    let mut value = serde_json::to_value(what)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("step");
    }
    let mut found = Vec::new();
    collect(prefix, &value, &mut found);
    Ok(found)
}

fn collect(name: String, value: &Value, into: &mut Vec<(String, f64)>) {
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}/{part}") };
    match value {
        Value::Number(number) => into.extend(number.as_f64().map(|number| (name, number))),
        // Values that were not measured are absent, so this one was measured and is not finite.
        Value::Null => into.push((name, f64::NAN)),
        Value::Object(fields) => fields.iter().for_each(|(part, value)| collect(below(part), value, into)),
        Value::Array(_) | Value::Bool(_) | Value::String(_) => {}
    }
}
