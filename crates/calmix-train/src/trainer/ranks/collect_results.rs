//! Sharing results between ranks: the result of rank 0, or those of all ranks.

use calmix_dist::ProcessGroup;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::trainer::error::TrainError;

/// An error as the other ranks receive it.
#[derive(Serialize, Deserialize)]
struct ErrorMessage {
    text: String,
    mistake: bool,
}

impl ErrorMessage {
    fn of(error: &TrainError) -> Self {
        Self { text: error.to_string(), mistake: error.is_mistake() }
    }

    fn into_error(self, process: usize) -> TrainError {
        TrainError::RemoteError { process, problem: self.text, mistake: self.mistake }
    }
}

/// Broadcasts rank 0's result; the other ranks receive its error as text.
///
/// `local` is used on rank 0 only.
pub(crate) fn broadcast_result<T: Serialize + DeserializeOwned, E: Into<TrainError>>(
    processes: &ProcessGroup,
    local: Option<Result<T, E>>,
) -> Result<T, TrainError> {
    let local = local.map(|local| local.map_err(Into::into));
    if processes.size() == 1 {
        return local.unwrap_or_else(|| unreachable!("rank 0 has a result"));
    }
    let message = local.as_ref().map(|local| local.as_ref().map_err(ErrorMessage::of));
    let message = serde_json::to_vec(&message).map_err(unreadable)?;
    let received = processes.broadcast_bytes(0, &message)?;
    if let Some(local) = local {
        return local;
    }
    let received: Option<Result<T, ErrorMessage>> = serde_json::from_slice(&received).map_err(unreadable)?;
    let nothing = || Err(ErrorMessage { text: "it has no result".to_owned(), mistake: false });
    received.unwrap_or_else(nothing).map_err(|error| error.into_error(0))
}

/// All-gathers the results of all ranks, or returns the first error. A rank gets its own error unchanged, and another rank's as
/// text.
pub(crate) fn all_gather_results<T: Serialize + DeserializeOwned, E: Into<TrainError>>(
    processes: &ProcessGroup,
    local: Result<T, E>,
) -> Result<Vec<T>, TrainError> {
    let local = local.map_err(Into::into);
    let message = serde_json::to_vec(&local.as_ref().map_err(ErrorMessage::of)).map_err(unreadable)?;
    let received = processes.all_gather_bytes(&message)?;
    local?;
    let read = |(process, message): (usize, Vec<u8>)| {
        let result: Result<T, ErrorMessage> = serde_json::from_slice(&message).map_err(unreadable)?;
        result.map_err(|error| error.into_error(process))
    };
    received.into_iter().enumerate().map(read).collect()
}

/// Returns the error of a message that is not the expected JSON.
pub(crate) fn unreadable(error: serde_json::Error) -> TrainError {
    TrainError::UnreadableMessage(Some(error))
}
