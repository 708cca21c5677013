//! Writes one JSON object per line.

use std::io::{self, Write};

use serde::Serialize;

use super::{Sink, at};
use crate::error::RunError;
use crate::events::{Event, Pace};

const EVENTS: &str = "events.jsonl";
const TIMING: &str = "timing.jsonl";

/// Appends events to one writer and the pace to another, a line each.
///
/// What a file holds already does not matter: a resumed run cuts `events.jsonl` back to its checkpoint, and then
/// the lines that follow are the ones that an uninterrupted run would have written.
///
/// ```
/// use calmix_run::events::{Event, Note};
/// use calmix_run::sink::{JsonLines, Sink};
///
/// let mut events = Vec::new();
/// let mut timing = Vec::new();
/// let note = Note { step: 3, text: "so it is".to_owned(), hint: "do this".to_owned() };
/// JsonLines::new(&mut events, &mut timing).event(&Event::Note(note))?;
/// assert_eq!(events, b"{\"event\":\"note\",\"step\":3,\"text\":\"so it is\",\"hint\":\"do this\"}\n");
/// # Ok::<(), calmix_run::error::RunError>(())
/// ```
#[derive(Debug)]
pub struct JsonLines<E, T> {
    events: E,
    timing: T,
}

impl<E: Write, T: Write> JsonLines<E, T> {
    /// Appends to `events.jsonl` and `timing.jsonl`, which the caller opened.
    pub fn new(events: E, timing: T) -> Self {
        Self { events, timing }
    }
}

impl<E: Write, T: Write> Sink for JsonLines<E, T> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        at(EVENTS, append(&mut self.events, event))
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        at(TIMING, append(&mut self.timing, pace))
    }

    fn flush(&mut self) -> Result<(), RunError> {
        at(EVENTS, self.events.flush())?;
        at(TIMING, self.timing.flush())
    }
}

/// Writes a line in one piece, so that an unbuffered writer is called once per line.
fn append(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}
