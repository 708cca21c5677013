//! Reads the folder of a run. Readers take no lock and write nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{FileError, FileProblem};
use crate::events::{Event, EventError};
use crate::result::RunResult;
use crate::run::{Paths, RunEnvironment, RunFile};
use crate::summary::RunSummary;

/// Bytes of the longest file of JSON that is read whole here: the names of a million classes.
const LONGEST: u64 = 64 << 20;

/// What a run was made with.
///
/// # Errors
/// If it cannot be read.
pub fn environment(folder: &Path) -> Result<RunEnvironment, FileError> {
    json(&Paths::new(folder).file(RunFile::Environment)?)
}

/// What a run is.
///
/// # Errors
/// If it cannot be read.
pub fn summary(folder: &Path) -> Result<RunSummary, FileError> {
    json(&Paths::new(folder).file(RunFile::Summary)?)
}

/// The result of a run; none before it is finished.
///
/// # Errors
/// If it cannot be read.
pub fn result(folder: &Path) -> Result<Option<RunResult>, FileError> {
    let path = Paths::new(folder).file(RunFile::Result)?;
    if path.exists() { Ok(Some(json(&path)?)) } else { Ok(None) }
}

/// What happened in a run, in order. A line that is torn, as a kill leaves it, ends the story.
///
/// # Errors
/// If the file cannot be read, or a whole line of it is no event; the place is named.
pub fn events(folder: &Path) -> Result<Vec<Event>, FileError> {
    let path = Paths::new(folder).events();
    let mut lines = BufReader::new(File::open(&path).map_err(|error| FileError::new(&path, error))?);
    let mut events = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).map_err(|error| FileError::new(&path, error))?;
        let Some(whole) = line.strip_suffix('\n') else { return Ok(events) };
        let event = Event::from_line(whole).map_err(|error: EventError| {
            let place = format!("line {}", events.len() + 1);
            FileError::new(&path, FileProblem::Format(error.to_string())).at(place)
        })?;
        events.push(event);
    }
}

/// Whether a run has a recipe, and so can be resumed.
pub fn has_begun(folder: &Path) -> bool {
    Paths::new(folder).file(RunFile::Recipe).is_ok_and(|path| path.exists())
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    read.map_err(|error| FileError::new(path, error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| FileError::new(path, FileProblem::Format(error.to_string())))
}
