//! Reads a run folder. Readers take no lock and write nothing.

pub mod inspect;
pub mod overview;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::margins::SampleMargins;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_recipe::MAX_RECIPE_BYTES;
use serde::de::DeserializeOwned;

use crate::events::Event;
use crate::model_info::{FORMAT, ModelInfo};
use crate::result::RunResult;
use crate::run::{Paths, RunEnvironment, RunFile};
use crate::summary::RunSummary;
use crate::tensor_files::examples::Thumbnails;
use crate::tensor_files::predictions_file;

/// The maximum size of `environment.json` and `summary.json`, in bytes.
const MAX_SUMMARY_BYTES: u64 = 64 << 10;
/// The maximum size of `result.json` and `model.json`, in bytes: the names of a million classes.
const MAX_RESULT_BYTES: u64 = 16 << 20;
/// The maximum length of a line in `events.jsonl`, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Reads the environment in which a run was made.
pub fn environment(folder: &Path) -> Result<RunEnvironment, FileError> {
    json(&Paths::new(folder).file(RunFile::Environment)?, MAX_SUMMARY_BYTES)
}

/// Reads the summary of a run.
pub fn summary(folder: &Path) -> Result<RunSummary, FileError> {
    json(&Paths::new(folder).file(RunFile::Summary)?, MAX_SUMMARY_BYTES)
}

/// Reads the result of a run; `None` before it is finished.
pub fn result(folder: &Path) -> Result<Option<RunResult>, FileError> {
    let path = Paths::new(folder).file(RunFile::Result)?;
    if safe_open::exists(&path) { Ok(Some(json(&path, MAX_RESULT_BYTES)?)) } else { Ok(None) }
}

/// Reads `model.json`, which describes the weights of a run.
pub fn model_info(folder: &Path) -> Result<ModelInfo, FileError> {
    let path = Paths::new(folder).file(RunFile::ModelInfo)?;
    if !safe_open::exists(&path) {
        let problem = "this file is missing, so calmix cannot verify that the weights are those of this run";
        let hint = "restore it, or delete result.json and the newest checkpoint and resume the run";
        return Err(FileError::new(path, FileProblem::Content(problem.to_owned())).hint(hint));
    }
    let info: ModelInfo = json(&path, MAX_RESULT_BYTES)?;
    if info.format != FORMAT {
        let problem = format!("format {}, but this version of calmix reads format {FORMAT}", info.format);
        let hint = "use the version of calmix that trained the run, or train it again";
        return Err(FileError::new(path, FileProblem::Content(problem)).hint(hint));
    }
    if !info.is_sealed() {
        let problem = "the calibration has changed since it was written";
        let hint = "restore model.json as it was written";
        return Err(FileError::new(path, FileProblem::Changed(problem.to_owned())).hint(hint));
    }
    Ok(info)
}

/// Reads the sample margins at the end of a run; `None` before, or if the method does not use them.
pub fn margins(folder: &Path) -> Result<Option<SampleMargins>, FileError> {
    let path = Paths::new(folder).file(RunFile::Margins)?;
    if safe_open::exists(&path) { Ok(Some(json(&path, MAX_SUMMARY_BYTES)?)) } else { Ok(None) }
}

/// Reads the thumbnails of example predictions; `None` before the end of a run.
pub fn thumbnails(folder: &Path) -> Result<Option<Thumbnails>, FileError> {
    let path = Paths::new(folder).file(RunFile::Thumbnails)?;
    if !safe_open::exists(&path) {
        return Ok(None);
    }
    let read = Thumbnails::from_bytes(&safe_open::read(&path, Thumbnails::MAX_BYTES)?);
    Ok(Some(read.map_err(|error| FileError::new(&path, FileProblem::Format(error.to_string())))?))
}

/// Reads the text of a run's recipe.
pub fn recipe(folder: &Path) -> Result<String, FileError> {
    safe_open::read_text(&Paths::new(folder).file(RunFile::Recipe)?, MAX_RECIPE_BYTES)
}

/// Reads predictions from a file with at most these numbers of samples and classes.
///
/// # Errors
/// If it cannot be read, has more, or is not a file of predictions.
pub fn predictions(file: &Path, samples: u64, classes: usize) -> Result<Predictions, FileError> {
    predictions_file::from_bytes(&safe_open::read(file, predictions_file::max_bytes(samples, classes))?)
        .map_err(|error| FileError::new(file, FileProblem::Format(error.to_string())))
}

/// Reads the predictions of an evaluation; `None` if the run never wrote them or has deleted them.
pub fn predictions_of(folder: &Path, evaluation: &Evaluation) -> Result<Option<Predictions>, FileError> {
    let name = predictions_file::file_name(evaluation.step, evaluation.split, evaluation.model);
    let path = Paths::new(folder).file(RunFile::Predictions(&name))?;
    if !safe_open::exists(&path) {
        return Ok(None);
    }
    let RunSummary { classes, labelled, validation, .. } = summary(folder)?;
    let samples = match evaluation.split {
        EvalSet::OutOfFold | EvalSet::Labelled | EvalSet::Chosen => evaluation.samples.min(labelled as u64),
        EvalSet::Validation => evaluation.samples.min(validation as u64),
        // Only the events have the size of the test split.
        EvalSet::Test => evaluation.samples,
    };
    predictions(&path, samples, classes).map(Some)
}

/// Reads the out-of-fold predictions of labels that were [chosen](EvalSet::Chosen), made with the evaluation at `step`; `None` if
/// there are none.
pub fn predictions_of_chosen(folder: &Path, step: u64) -> Result<Option<Predictions>, FileError> {
    let name = predictions_file::file_name(step, EvalSet::Chosen, EvalModel::Ema);
    let path = Paths::new(folder).file(RunFile::Predictions(&name))?;
    if !safe_open::exists(&path) {
        return Ok(None);
    }
    let RunSummary { classes, labelled, .. } = summary(folder)?;
    predictions(&path, labelled as u64, classes).map(Some)
}

/// Reads the events of a run in order, up to an incomplete line, which a kill can leave. Memory is proportional to the whole
/// file.
pub fn events(folder: &Path) -> Result<Vec<Event>, FileError> {
    let mut events = Vec::new();
    each_event(folder, |event| events.push(event))?;
    Ok(events)
}

/// Reads the latest evaluation of each split and model that `wanted` accepts, in the order of the file. Memory is
/// proportional to these, however long the file is.
pub fn latest_evaluations(
    folder: &Path,
    wanted: impl Fn(&Evaluation) -> bool,
) -> Result<Vec<Event>, FileError> {
    let mut latest: Vec<Box<Evaluation>> = Vec::new();
    each_event(folder, |event| {
        if let Event::Evaluation(evaluation) = event
            && wanted(&evaluation)
        {
            latest.retain(|other| (other.split, other.model) != (evaluation.split, evaluation.model));
            latest.push(evaluation);
        }
    })?;
    Ok(latest.into_iter().map(Event::Evaluation).collect())
}

fn each_event(folder: &Path, mut visit: impl FnMut(Event)) -> Result<(), FileError> {
    let path = Paths::new(folder).events();
    let mut lines = BufReader::new(safe_open::open(&path)?.0);
    // Bytes, not text: a kill may truncate a line within a character.
    let mut line = Vec::new();
    for number in 1_u64.. {
        let at = |error: FileError| error.at(format!("line {number}"));
        line.clear();
        let read = (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let length = read.map_err(|error| at(FileError::new(&path, error)))?;
        let Some(complete) = line.strip_suffix(b"\n") else {
            if length as u64 == MAX_LINE_BYTES {
                let problem = format!("longer than {MAX_LINE_BYTES} bytes");
                return Err(at(FileError::new(&path, FileProblem::Limit(problem))));
            }
            break;
        };
        let format = |problem: String| at(FileError::new(&path, FileProblem::Format(problem)));
        let text = str::from_utf8(complete).map_err(|error| format(error.to_string()))?;
        let event = Event::from_line(text).map_err(|error| format(error.to_string()))?;
        visit(event);
    }
    Ok(())
}

/// Returns whether a run has a recipe and can therefore be resumed.
pub fn has_begun(folder: &Path) -> bool {
    Paths::new(folder).file(RunFile::Recipe).is_ok_and(|path| safe_open::exists(&path))
}

fn json<T: DeserializeOwned>(path: &Path, max_bytes: u64) -> Result<T, FileError> {
    serde_json::from_slice(&safe_open::read(path, max_bytes)?)
        .map_err(|error| FileError::new(path, FileProblem::Format(error.to_string())))
}
