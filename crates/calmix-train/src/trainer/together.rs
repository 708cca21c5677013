//! Things that one process does for all, and of which all have to know how they went.

use std::fmt::Display;

use calmix_dist::Processes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::TrainError;

/// What process 0 came to, for all: its own error with itself, a word about it with the others.
///
/// `own` is looked at with process 0 alone.
pub(super) fn from_first<T: Serialize + DeserializeOwned, E: Display + Into<TrainError>>(
    processes: &Processes,
    own: Option<Result<T, E>>,
) -> Result<T, TrainError> {
    if processes.size() == 1 {
        return own
            .unwrap_or_else(|| unreachable!("the first process has come to something"))
            .map_err(Into::into);
    }
    let said = own.as_ref().map(|own| own.as_ref().map_err(ToString::to_string));
    let said = serde_json::to_vec(&said).map_err(garbled)?;
    let heard = processes.broadcast_bytes(0, &said)?;
    if let Some(own) = own {
        return own.map_err(Into::into);
    }
    let heard: Option<Result<T, String>> = serde_json::from_slice(&heard).map_err(garbled)?;
    let heard = heard.unwrap_or_else(|| Err("it came to nothing".to_owned()));
    heard.map_err(|problem| TrainError::Elsewhere { process: 0, problem })
}

/// What every process came to, for all, or the first error: one's own as it is, another's by what it says.
pub(super) fn from_all<T: Serialize + DeserializeOwned, E: Display + Into<TrainError>>(
    processes: &Processes,
    own: Result<T, E>,
) -> Result<Vec<T>, TrainError> {
    let said = serde_json::to_vec(&own.as_ref().map_err(ToString::to_string)).map_err(garbled)?;
    let heard = processes.gather_bytes(&said)?;
    own.map_err(Into::into)?;
    let read = |(process, said): (usize, Vec<u8>)| {
        let said: Result<T, String> = serde_json::from_slice(&said).map_err(garbled)?;
        said.map_err(|problem| TrainError::Elsewhere { process, problem })
    };
    heard.into_iter().enumerate().map(read).collect()
}

/// What another process sent cannot be read.
pub(super) fn garbled(error: serde_json::Error) -> TrainError {
    TrainError::Garbled(Some(error))
}
