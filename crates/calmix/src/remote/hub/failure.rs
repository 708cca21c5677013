//! A failed request, and whether it is worth another attempt.

use anyhow::Error;

/// A failed request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    /// Whether the next attempt may succeed: a cut connection, a busy server.
    pub(super) is_passing: bool,
}

impl Failure {
    /// A failure that the next attempt may not have.
    pub(super) fn passing(error: impl Into<Error>) -> Self {
        Self { error: error.into(), is_passing: true }
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), is_passing: false }
    }
}
