//! Errors of runs and of models in use in the terms of the command line: a sentence, what to try, and the exit code.

use anyhow::Error;
use calmix_heads::HeadsError;
use calmix_io::error::ErrorKind;
use calmix_lifecycle::LifecycleError;

use crate::error::{CliError, PreparationStopped, sentence};
use crate::model::ModelError;

/// Replaces an error of a run or of a model by one that the command line can report. Others stay as they are.
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

/// The error of a head in the terms of the command line.
pub fn explain(error: HeadsError) -> Error {
    match error {
        HeadsError::Lifecycle(error) => explain_lifecycle(error),
        error => refused(error.kind(), &error.into(), None),
    }
}

/// The error of any run in the terms of the command line.
pub fn explain_lifecycle(error: LifecycleError) -> Error {
    let hint = match &error {
        LifecycleError::Table(error) => Some(error.hint()),
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

/// A sentence with an exit code that says whether the user has to correct something.
pub fn refused(kind: ErrorKind, error: &Error, hint: Option<String>) -> Error {
    let message = sentence(error);
    let refusal =
        if kind == ErrorKind::Mistake { CliError::invalid(message) } else { CliError::failed(message) };
    match hint {
        Some(hint) => refusal.hint(hint).into(),
        None => refusal.into(),
    }
}
