//! Failed requests: the meaning of a refusal by the Hub, and whether to try again.

use std::thread;
use std::time::Duration;

use anyhow::{Error, Result};
use calmix_io::shown::shown;
use ureq::Body;
use ureq::http::Response;

use crate::error::{CliError, sentence};
use crate::remote::hub::repository::Repository;
use crate::remote::hub::variables::Token;
use crate::terminal::status;

/// A failed request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    /// Whether another attempt may succeed, as after a cut connection or with a busy server.
    pub(super) is_passing: bool,
}

impl Failure {
    /// Creates a failure after which another attempt may succeed.
    pub(super) fn passing(error: impl Into<Error>) -> Self {
        Self { error: error.into(), is_passing: true }
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), is_passing: false }
    }
}

/// The maximum number of consecutive failed retries.
const MAX_RETRIES: u32 = 4;

/// The wait before the first retry; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// A counter of consecutive failed attempts.
#[derive(Debug, Default)]
pub(super) struct Retries {
    failed: u32,
}

impl Retries {
    /// Resets the counter after an attempt that made progress.
    pub(super) fn reset(&mut self) {
        self.failed = 0;
    }

    /// Waits before the next attempt, or returns the error of the last one.
    pub(super) fn wait_after(&mut self, failure: Failure) -> Result<()> {
        if !failure.is_passing || self.failed == MAX_RETRIES {
            return Err(failure.error);
        }
        status(&format!("{}; trying again", sentence(&failure.error)));
        thread::sleep(FIRST_WAIT * 2_u32.pow(self.failed));
        self.failed += 1;
        Ok(())
    }
}

/// The header with the Hub's error code.
const CODE: &str = "x-error-code";
const MESSAGE: &str = "x-error-message";

/// The Hub's message about an unknown or expired token.
const WRONG_TOKEN: &str = "Invalid credentials in Authorization header";

/// A refused request.
pub(super) struct Refused<'a> {
    pub(super) endpoint: &'a str,
    pub(super) repository: &'a Repository,
    pub(super) token: Option<&'a Token>,
    /// Whether the Hub refused it, not a server that it redirects to.
    pub(super) is_hub: bool,
}

/// Explains a response that is not a success.
pub(super) fn refusal(refused: &Refused<'_>, response: &Response<Body>) -> Failure {
    let status = response.status().as_u16();
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if matches!(status, 429 | 500..=599) {
        let what = if status == 429 { "too many requests" } else { "the server has a problem" };
        return Failure::passing(refused.failed(&format!("{what} (status {status})"), RETRY_HINT));
    }
    if !refused.is_hub {
        // The redirected address is valid for minutes; the next attempt gets a new one.
        return Failure::passing(
            refused.failed(&format!("its storage refused with status {status}"), RETRY_HINT),
        );
    }
    refused.explained(status, header(CODE), header(MESSAGE)).into()
}

const RETRY_HINT: &str = "try again later; the same command continues";

impl Refused<'_> {
    fn failed(&self, what: &str, hint: &str) -> CliError {
        CliError::failed(format!("{}: {what}", shown(self.endpoint))).hint(hint)
    }

    /// Explains what the user has to change.
    fn explained(&self, status: u16, code: &str, message: &str) -> CliError {
        let Self { endpoint, repository, token, .. } = self;
        let page = format!("{endpoint}/{repository}");
        let tokens = format!("{endpoint}/settings/tokens");
        let invalid = |what: String, hint: String| CliError::invalid(shown(what)).hint(shown(hint));
        match (status, code, token) {
            (_, "GatedRepo", Some(token)) => invalid(
                format!(
                    "{repository} is gated, and the token in {} has no access to it (status {status})",
                    token.source
                ),
                format!("accept its conditions at {page}, as the user whose token it is"),
            ),
            (_, "GatedRepo", None) => invalid(
                format!(
                    "{repository} is gated: the Hub gives it to users who have accepted its conditions (status {status})"
                ),
                format!("accept them at {page}, create a token at {tokens} and set HF_TOKEN to it"),
            ),
            (_, "RevisionNotFound", _) => invalid(
                format!("{repository} has no revision {} (status {status})", repository.revision),
                format!("its branches, tags and commits are at {page}/tree/main"),
            ),
            (_, "EntryNotFound", _) => invalid(
                format!("{repository} no longer has a file that it lists (status {status})"),
                format!("its files are at {page}/tree/main"),
            ),
            (401, _, Some(token)) if message == WRONG_TOKEN || code != "RepoNotFound" => invalid(
                format!("the Hub does not accept the token in {} (status 401)", token.source),
                format!("create another at {tokens} and set HF_TOKEN to it; public models need none"),
            ),
            (401 | 404, _, None) => invalid(
                format!("{repository} does not exist, or is private (status {status})"),
                format!(
                    "check the name at {page}; for a private model create a token at {tokens} and set HF_TOKEN to it"
                ),
            ),
            (401 | 404, _, Some(token)) => invalid(
                format!(
                    "{repository} does not exist, or the token in {} has no access to it (status {status})",
                    token.source
                ),
                format!("check the name at {page}"),
            ),
            (403, _, _) => invalid(
                format!("the Hub does not give access to {repository} (status 403)"),
                format!("open {page} to see why; a token of {tokens} needs the right to read its contents"),
            ),
            _ => self
                .failed(&format!("an answer with status {status}"), "is HF_ENDPOINT the address of a Hub?"),
        }
    }
}
