//! Errors of runs, of models in use and of moved datasets, in the terms of the command line: a sentence, a hint, and the exit
//! code.

use std::path::Path;

use anyhow::Error;
use calmix_data::cloud::CloudUrl;
use calmix_data::error::DataError;
use calmix_heads::HeadsError;
use calmix_io::error::ErrorKind;
use calmix_io::shown::shown;
use calmix_lifecycle::LifecycleError;
use calmix_recipe::Recipe;

use crate::error::{CliError, PreparationStopped, sentence};
use crate::model::ModelError;

/// Replaces an error of a run or of a model by one that the command line can report. Other errors are not changed.
pub fn explained(error: Error) -> Error {
    let error = match error.downcast::<HeadsError>() {
        Ok(error) => return explain(error),
        Err(error) => error,
    };
    let error = match error.downcast::<LifecycleError>() {
        Ok(error) => return explain_lifecycle(error),
        Err(error) => error,
    };
    match error.downcast::<ModelError>() {
        Ok(ModelError::Runtime(error)) if error.kind() == ErrorKind::Mistake => {
            CliError::invalid(error.to_string()).into()
        }
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// Explains an error of a head's run.
pub fn explain(error: HeadsError) -> Error {
    match error {
        HeadsError::Lifecycle(error) => explain_lifecycle(error),
        error => refused(error.kind(), &error.into(), None),
    }
}

/// Explains an error of any kind of run.
pub fn explain_lifecycle(error: LifecycleError) -> Error {
    let hint = match &error {
        LifecycleError::Start(error) => Some(error.hint()),
        LifecycleError::Changed { .. } | LifecycleError::NotBegun { .. } => {
            Some("calmix train --help".to_owned())
        }
        _ => None,
    };
    match error {
        LifecycleError::PreparationStopped => PreparationStopped.into(),
        LifecycleError::Data(error) => error.into(),
        LifecycleError::Run(error) => error.into(),
        LifecycleError::Recipe(error) => error.into(),
        error => refused(error.kind(), &error.into(), hint),
    }
}

/// Creates an error whose exit code says whether the user has to change something.
pub fn refused(kind: ErrorKind, error: &Error, hint: Option<String>) -> Error {
    let message = sentence(error);
    let refusal =
        if kind == ErrorKind::Mistake { CliError::invalid(message) } else { CliError::failed(message) };
    match hint {
        Some(hint) => refusal.hint(hint).into(),
        None => refusal.into(),
    }
}

/// Replaces an error of a run by a clearer one if its dataset is not where the recipe says. `command` is the command that failed,
/// for the hint.
pub(crate) fn explain_moved(error: Error, recipe: &Recipe, command: &str) -> Error {
    let moved = error.downcast_ref::<DataError>().and_then(|problem| moved(problem, recipe, command));
    moved.map_or(error, Error::from)
}

/// Returns the clearer error about data that cannot be read, if the dataset is not where the recipe says.
pub fn moved(problem: &DataError, recipe: &Recipe, command: &str) -> Option<CliError> {
    let data = &recipe.dataset;
    if recipe.has_vectors() {
        let is_missing = !data.path.is_empty() && !Path::new(&data.path).exists();
        let message = format!("{}: the vectors of this run have moved or were deleted", shown(&data.path));
        return is_missing.then(|| CliError::invalid(message).hint(format!("{command} --data NEW_PLACE")));
    }
    let DataError::File(_) = problem else { return None };
    let folders = [("dataset", &data.path, "--data"), ("prepared dataset", &data.prepared, "--prepared")];
    let is_missing = |folder: &str| {
        let path = Path::new(folder);
        // For a URL, the original error is clear enough.
        !folder.is_empty() && !CloudUrl::is_url(path) && !path.is_dir()
    };
    let (what, folder, option) = folders.into_iter().find(|(_, folder, _)| is_missing(folder))?;
    let message = format!("{}: the {what} of this run has moved or was deleted", shown(folder));
    Some(CliError::invalid(message).hint(format!("{command} {option} NEW_FOLDER")))
}
