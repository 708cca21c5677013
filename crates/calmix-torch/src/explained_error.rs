//! Errors of training in the terms of the command line: a sentence, what to try, and the exit code.

use anyhow::Error;
use calmix::error::{CliError, PreparationStopped, sentence};
use calmix::explained_error::{self, explain};
use calmix_io::error::ErrorKind;
use calmix_train::trainer::TrainError;

/// Replaces an error of training by one that the command line can report.
pub(crate) fn explained(error: Error) -> Error {
    let error = match error.downcast::<TrainError>() {
        Ok(error) => error,
        Err(error) => return explained_error::explained(error),
    };
    let is_mistake = error.kind() == ErrorKind::Mistake;
    let error = match error {
        TrainError::PreparationStopped => return PreparationStopped.into(),
        TrainError::Data(error) => return error.into(),
        TrainError::Run(error) => return error.into(),
        TrainError::Recipe(error) => return error.into(),
        TrainError::Vectors(error) => return explain(*error),
        error => Error::from(error),
    };
    let message = sentence(&error);
    if is_mistake { CliError::invalid(message).into() } else { CliError::failed(message).into() }
}
