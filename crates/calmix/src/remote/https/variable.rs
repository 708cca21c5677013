//! Environment variables of the user.

use std::env;
use std::time::Duration;

use crate::error::CliError;

/// Reads the environment variable of a name, if it is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a time from the environment variable of a name, in whole seconds.
pub(crate) fn seconds(name: &str, default: Duration) -> Result<Duration, CliError> {
    match variable(name).map(|seconds| seconds.parse::<u32>()) {
        None => Ok(default),
        Some(Ok(seconds @ 1..)) => Ok(Duration::from_secs(seconds.into())),
        Some(_) => Err(CliError::invalid(format!("{name} is not a number of seconds"))),
    }
}
