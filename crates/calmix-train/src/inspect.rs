//! What is in the folder of a run, for whoever only reads: no lock is taken and nothing is written.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use calmix_data::error::{DataError, Problem};
use serde::de::DeserializeOwned;

use crate::checkpoint::{Skipped, newest};
use crate::events::{Event, EventError};
use crate::recipe::{Layers, Resolved};
use crate::run::{Environment, Paths, RunError, RunFile};
use crate::trainer::{RunResult, TrainError};

/// Bytes of the longest file of JSON that is read whole here: the names of a million classes.
const LONGEST: u64 = 64 << 20;

/// How far a run is.
#[derive(Debug)]
pub struct Inspected {
    /// Its recipe.
    pub recipe: Resolved,
    /// What it was made with.
    pub environment: Environment,
    /// The step of the newest checkpoint that can be used; none before the first.
    pub step: Option<u64>,
    /// Newer checkpoints that cannot be used.
    pub skipped: Vec<Skipped>,
    /// Its result, once it is finished.
    pub result: Option<RunResult>,
}

/// How far the run in a folder is.
///
/// # Errors
/// If there is no run, or its files are damaged.
pub fn inspect(folder: &Path) -> Result<Inspected, TrainError> {
    let (recipe, environment) = (recipe(folder)?, environment(folder)?);
    let found = newest(&Paths::new(folder).checkpoints())?;
    let step = found.as_ref().map(|found| found.checkpoint.step());
    let skipped = found.map(|found| found.skipped).unwrap_or_default();
    Ok(Inspected { recipe, environment, step, skipped, result: result(folder)? })
}

/// The recipe of a run.
///
/// # Errors
/// If there is no run that has begun, or its recipe cannot be read.
pub fn recipe(folder: &Path) -> Result<Resolved, TrainError> {
    if !has_begun(folder) {
        return Err(RunError::NoRun { path: folder.to_owned() }.into());
    }
    Ok(Layers::new().file(&Paths::new(folder).file(RunFile::Recipe)?).resolve()?)
}

/// What a run was made with.
///
/// # Errors
/// If it cannot be read.
pub fn environment(folder: &Path) -> Result<Environment, TrainError> {
    Ok(json(&Paths::new(folder).file(RunFile::Environment)?)?)
}

/// The result of a run; none before it is finished.
///
/// # Errors
/// If it cannot be read.
pub fn result(folder: &Path) -> Result<Option<RunResult>, TrainError> {
    let path = Paths::new(folder).file(RunFile::Result)?;
    if path.exists() { Ok(Some(json(&path)?)) } else { Ok(None) }
}

/// What happened in a run, in order. A line that is torn, as a kill leaves it, ends the story.
///
/// # Errors
/// If the file cannot be read, or a whole line of it is no event; the place is named.
pub fn events(folder: &Path) -> Result<Vec<Event>, TrainError> {
    let path = Paths::new(folder).events();
    let mut lines = BufReader::new(File::open(&path).map_err(|error| DataError::new(&path, error))?);
    let mut events = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).map_err(|error| DataError::new(&path, error))?;
        let Some(whole) = line.strip_suffix('\n') else { return Ok(events) };
        let event = Event::from_line(whole).map_err(|error: EventError| {
            let place = format!("line {}", events.len() + 1);
            DataError::new(&path, Problem::Format(error.to_string())).at(place)
        })?;
        events.push(event);
    }
}

/// Whether a run has a recipe, and so can be resumed.
pub fn has_begun(folder: &Path) -> bool {
    Paths::new(folder).file(RunFile::Recipe).is_ok_and(|path| path.exists())
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    read.map_err(|error| DataError::new(path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| DataError::new(path, Problem::Format(error.to_string())))
}
