//! Errors of heads and of models in use in the terms of the command line: a sentence, what to try, and the exit code.

use anyhow::Error;
use calmix_io::error::ErrorKind;
use calmix_vectors::VectorsError;

use crate::error::{CliError, PreparationStopped, sentence};
use crate::model::ModelError;

/// Replaces an error of a head or of a model by one that the command line can report. Others stay as they are.
pub fn explained(error: Error) -> Error {
    let error = match error.downcast::<VectorsError>() {
        Ok(error) => return explain(error),
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

/// The error in the terms of the command line.
pub fn explain(error: VectorsError) -> Error {
    let is_mistake = error.kind() == ErrorKind::Mistake;
    let hint = match &error {
        VectorsError::Table(error) => Some(error.hint()),
        VectorsError::Start(error) => Some(error.hint()),
        VectorsError::Changed { .. } | VectorsError::NotBegun { .. } => {
            Some("calmix train --help".to_owned())
        }
        _ => None,
    };
    let error = match error {
        VectorsError::PreparationStopped => return PreparationStopped.into(),
        VectorsError::Data(error) => return error.into(),
        VectorsError::Run(error) => return error.into(),
        VectorsError::Recipe(error) => return error.into(),
        error => Error::from(error),
    };
    let message = sentence(&error);
    let refusal = if is_mistake { CliError::invalid(message) } else { CliError::failed(message) };
    match hint {
        Some(hint) => refusal.hint(hint).into(),
        None => refusal.into(),
    }
}
