//! Converts errors of object stores to errors about a URL, with a hint.

use std::io;
use std::path::Path;

use calmix_io::error::FileError;
use object_store::Error;

const CREDENTIALS: &str = "set the credentials in environment variables, see docs/guides/object-storage.md";

/// Returns whether the same request may succeed later.
pub(super) fn is_retryable(error: &Error) -> bool {
    let is_refused = refusal(error).is_some();
    matches!(error, Error::Generic { .. } | Error::JoinError { .. }) && !is_refused
}

/// Returns the status of a permanent refusal: 4xx, except timeouts and too many requests.
fn refusal(error: &Error) -> Option<u16> {
    let text = error.to_string();
    let (_, rest) = text.split_once("status code: ")?;
    let status: u16 = rest.get(..3)?.parse().ok()?;
    ((400..500).contains(&status) && ![408, 429].contains(&status)).then_some(status)
}

/// Converts an error to one about the URL in `path`.
pub(super) fn to_file_error(path: &Path, error: &Error) -> FileError {
    let io = |kind: io::ErrorKind, text: String| FileError::new(path, io::Error::new(kind, text));
    let status = refusal(error);
    match error {
        _ if status == Some(404) => missing(path),
        _ if status.is_some_and(|status| [401, 403].contains(&status)) => refused(path, error),
        Error::NotFound { .. } => missing(path),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => refused(path, error),
        _ if status.is_some() => {
            let problem = format!("the server refuses the request ({})", first_line(error));
            FileError::mistake(path, problem).hint("check the URL and the environment variables")
        }
        Error::NotSupported { .. } | Error::NotImplemented { .. } => {
            let problem = format!("the server cannot do this ({})", first_line(error));
            FileError::mistake(path, problem)
        }
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => {
            let hint = "correct the URL or the environment variables";
            FileError::mistake(path, first_line(error)).hint(hint)
        }
        // Before the first request, because a variable is missing.
        Error::Generic { .. } if !is_of_a_request(error) => {
            FileError::mistake(path, first_line(error)).hint(CREDENTIALS)
        }
        _ => {
            let text = format!("the server does not answer as it should ({})", first_line(error));
            let hint = "check the URL, the server and the network, then start the same command again";
            io(io::ErrorKind::TimedOut, text).hint(hint)
        }
    }
}

fn missing(path: &Path) -> FileError {
    let error = io::Error::new(io::ErrorKind::NotFound, "there is no such bucket or object");
    FileError::new(path, error).hint("check the URL; names are case-sensitive")
}

fn refused(path: &Path, error: &Error) -> FileError {
    let text = format!("the server refuses access ({})", first_line(error));
    FileError::new(path, io::Error::new(io::ErrorKind::PermissionDenied, text)).hint(CREDENTIALS)
}

/// Returns whether an error came from a request rather than from the client's settings.
fn is_of_a_request(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    let mut text = error.to_string();
    while let Some(cause) = source {
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    ["request", "HTTP", "status", "body", "connect", "response"].iter().any(|word| text.contains(word))
}

/// Returns the message of the innermost cause, without the pages that servers send with an error.
fn first_line(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let inner = cause.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        source = cause.source();
    }
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(300).collect()
}
