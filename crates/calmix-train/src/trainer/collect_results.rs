//! Sharing results between ranks: the result of rank 0, or those of all ranks.

use std::fmt::Display;

use calmix_dist::ProcessGroup;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::TrainError;

/// Broadcasts rank 0's result; the other ranks receive its error as text.
///
/// `own` is used on rank 0 only.
pub(super) fn broadcast_result<T: Serialize + DeserializeOwned, E: Display + Into<TrainError>>(
    processes: &ProcessGroup,
    own: Option<Result<T, E>>,
) -> Result<T, TrainError> {
    if processes.size() == 1 {
        return own.unwrap_or_else(|| unreachable!("rank 0 has a result")).map_err(Into::into);
    }
    let message = own.as_ref().map(|own| own.as_ref().map_err(ToString::to_string));
    let message = serde_json::to_vec(&message).map_err(unreadable)?;
    let received = processes.broadcast_bytes(0, &message)?;
    if let Some(own) = own {
        return own.map_err(Into::into);
    }
    let received: Option<Result<T, String>> = serde_json::from_slice(&received).map_err(unreadable)?;
    let received = received.unwrap_or_else(|| Err("it has no result".to_owned()));
    received.map_err(|problem| TrainError::RemoteError { process: 0, problem })
}

/// All-gathers the results of all ranks, or returns the first error: a rank's own error as it is, another rank's as
/// text.
pub(super) fn all_gather_results<T: Serialize + DeserializeOwned, E: Display + Into<TrainError>>(
    processes: &ProcessGroup,
    own: Result<T, E>,
) -> Result<Vec<T>, TrainError> {
    let message = serde_json::to_vec(&own.as_ref().map_err(ToString::to_string)).map_err(unreadable)?;
    let received = processes.all_gather_bytes(&message)?;
    own.map_err(Into::into)?;
    let read = |(process, message): (usize, Vec<u8>)| {
        let result: Result<T, String> = serde_json::from_slice(&message).map_err(unreadable)?;
        result.map_err(|problem| TrainError::RemoteError { process, problem })
    };
    received.into_iter().enumerate().map(read).collect()
}

/// The error of a message that is not the JSON this rank expects.
pub(super) fn unreadable(error: serde_json::Error) -> TrainError {
    TrainError::UnreadableMessage(Some(error))
}
