//! The events of a run as plain data.
//!
//! There are two kinds of records. An [`Event`] is a function of the recipe, the data and the seed: losses, metrics,
//! warnings. A [`Pace`] depends on the clock and the machine: images per second, time left. Events go into `events.jsonl`,
//! the pace into `timing.jsonl`, so a run that was killed and resumed leaves the same `events.jsonl`, byte for byte, as an
//! uninterrupted one.
//!
//! # Format
//!
//! One JSON object per line; `event` is its kind. Values that were not measured are absent. JSON has no non-finite numbers,
//! so an infinite or NaN loss is written as `null` and read back as NaN; whether it ends the run is not the log's decision.
//! Numbers have as many digits as their type needs to be read back to the same bits: f32 values of the engine stay f32, so
//! 0.1 is not written as 0.10000000149011612.
//!
//! ```
//! use calmix_run::events::{Event, Loss, Step};
//!
//! let loss = Loss { total: 0.75, labelled: 0.5, unlabelled: Some(f32::INFINITY), ..Loss::default() };
//! let event = Event::Step(Box::new(Step { learning_rate: 0.03, ..Step::new(7, loss) }));
//! let line = r#"{"event":"step","step":7,"learning_rate":0.03,"loss":{"total":0.75,"labelled":0.5,"unlabelled":null}}"#;
//! assert_eq!(event.to_line()?, line);
//! let Event::Step(back) = Event::from_line(line)? else { panic!() };
//! assert!(back.loss.unlabelled.is_some_and(f32::is_nan) && back.loss.mix.is_none());
//! # Ok::<(), calmix_run::error::RunError>(())
//! ```

mod pace;
mod starvation;
mod step;

use std::collections::BTreeMap;

use calmix_metrics::evaluate::{Evaluation, Selected, Selection};
use calmix_metrics::pseudo_labels::PseudoLabelMetrics;
use serde::{Deserialize, Serialize};

use crate::error::RunError;

pub use pace::{Collectives, Exchange, Pace, Pacer, Reading};
pub use starvation::Starvation;
pub use step::{Loss, Step};

/// An event of a run; the same in every repetition of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// An update of the network.
    Step(Box<Step>),
    /// An evaluation of the network.
    Evaluation(Box<Evaluation>),
    /// A warning for the user.
    Note(Note),
    /// The end of a finished run.
    Finished(Finished),
}

/// A warning with a suggestion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The number of updates before the warning.
    pub step: u64,
    /// The warning, as a sentence.
    pub text: String,
    /// What the user can do.
    pub hint: String,
}

/// The result of a finished run. An interrupted run has none yet, since it can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The number of updates.
    pub step: u64,
    /// The result by every selection rule of the recipe.
    pub selected: BTreeMap<Selection, Selected>,
    /// The quality of the pseudo-labels that the trained network (not its EMA) gives to all unlabelled samples at the end,
    /// on images without augmentation and with BatchNorm's running statistics. `None` if no true class is known, or the
    /// recipe does not request it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo: Option<PseudoLabelMetrics>,
}

impl Event {
    /// Returns the number of updates before the event.
    pub fn step(&self) -> u64 {
        match self {
            Self::Step(step) => step.step,
            Self::Evaluation(evaluation) => evaluation.step,
            Self::Note(note) => note.step,
            Self::Finished(finished) => finished.step,
        }
    }

    /// Formats the line for `events.jsonl`, without its line break.
    pub fn to_line(&self) -> Result<String, RunError> {
        serde_json::to_string(self).map_err(|error| no_event(&error))
    }

    /// Parses a line of `events.jsonl`.
    ///
    /// # Errors
    /// If it is not JSON, has an unknown kind, or lacks a field of its kind. Fields of later versions are ignored.
    //
    // Not serde's own reader of tagged enums: it reads numbers as f64 before it knows the type, and a number of
    // f32 that is rounded twice may come back one unit off.
    pub fn from_line(line: &str) -> Result<Self, RunError> {
        let EventKind { event } = fields(line)?;
        Ok(match event.as_str() {
            "step" => Self::Step(fields(line)?),
            "evaluation" => Self::Evaluation(fields(line)?),
            "note" => Self::Note(fields(line)?),
            "finished" => Self::Finished(fields(line)?),
            _ => {
                return Err(RunError::Format(format!(
                    "there is no event `{event}`; it may have been written by another version of calmix"
                )));
            }
        })
    }
}

/// The field that every event has.
#[derive(Deserialize)]
struct EventKind {
    event: String,
}

fn fields<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, RunError> {
    serde_json::from_str(line).map_err(|error| no_event(&error))
}

/// Returns the error for a line that is not JSON or lacks the fields of its kind.
fn no_event(error: &serde_json::Error) -> RunError {
    RunError::Format(format!(
        "this is not an event: {error}; it may have been written by another version of calmix"
    ))
}
