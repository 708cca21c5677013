//! A tracking server: one JSON request, one JSON answer, over HTTP or HTTPS.
//!
//! The address of the server and the environment decide everything; the variables are MLflow's own, so that a shell that
//! is set up for MLflow's Python client is set up for calmix.

use std::time::{Duration, Instant};

use calmix_io::shown::shown;
use serde_json::Value;
use ureq::http::Uri;
use ureq::http::header::AUTHORIZATION;
use ureq::{Agent, RequestBuilder};

use super::credentials::Credentials;
use crate::error::CliError;
use crate::remote::https::{
    MAX_REDIRECTS, agent_config, location, proxy_for, read_address, redirected, seconds, tls_failure,
    variable, warn_if_unencrypted,
};

/// The default of `MLFLOW_HTTP_REQUEST_TIMEOUT`: how long a complete answer may take, with its redirects.
const PATIENCE: Duration = Duration::from_mins(1);

/// Bytes of the longest answer.
const LONGEST: u64 = 64 << 20;

const CERTIFICATES: &str = "MLFLOW_TRACKING_SERVER_CERT_PATH";
const TIMEOUT: &str = "MLFLOW_HTTP_REQUEST_TIMEOUT";

/// A server that requests are sent to.
pub(crate) struct Server {
    /// Without a slash at its end, a user or a password.
    pub(crate) address: String,
    pub(super) credentials: Credentials,
    agent: Agent,
    patience: Duration,
}

/// The answer of a server.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Null if it is not JSON, as the page of a proxy.
    pub(super) body: Value,
}

/// A request to a server.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    /// GET with a key and its value, which is percent-encoded.
    Get(&'a str, &'a str),
    Post(&'a Value),
}

impl Server {
    /// Prepares requests to an address, as the environment says; connects to nothing yet.
    pub(crate) fn new(address: &str) -> Result<Self, CliError> {
        let uri = read_address(address, "the address of the tracking server", EXAMPLE, ELSEWHERE)?;
        let credentials = Credentials::read(variable)?;
        if credentials.header.is_some() {
            warn_if_unencrypted(&uri);
        }
        let patience = seconds(TIMEOUT, PATIENCE)?;
        let config = agent_config(CERTIFICATES)?.accept("application/json");
        let address = uri.to_string().trim_end_matches('/').to_owned();
        Ok(Self { address, credentials, agent: config.build().into(), patience })
    }

    /// Sends a request to a path below the address.
    pub(super) fn ask(&self, path: &str, request: Request<'_>) -> Result<Answer, CliError> {
        let deadline = Instant::now() + self.patience;
        let failed = |error: ureq::Error| self.failure(&error);
        let mut uri: Uri =
            format!("{}{path}", self.address).parse().map_err(|error: ureq::http::uri::InvalidUri| {
                CliError::invalid(format!("{}: {error}", shown(&self.address)))
            })?;
        let mut is_first = true;
        for _ in 0..=MAX_REDIRECTS {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut response = match request {
                Request::Get(key, value) => {
                    let get = self.with_config(self.agent.get(&uri), &uri, left)?;
                    // The address of a redirect has the query in it.
                    if is_first { get.query(key, value).call() } else { get.call() }
                }
                Request::Post(body) => {
                    let post = self.with_config(self.agent.post(&uri), &uri, left)?;
                    post.content_type("application/json").send(body.to_string())
                }
            }
            .map_err(failed)?;
            let Some(location) = location(&response) else {
                let bytes = response.body_mut().with_config().limit(LONGEST).read_to_vec().map_err(failed)?;
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                return Ok(Answer { status: response.status().as_u16(), body });
            };
            uri = self.following(&uri, &location)?;
            is_first = false;
        }
        Err(CliError::failed(format!("{}: more than {MAX_REDIRECTS} redirects", shown(&self.address))))
    }

    /// Returns the target of a redirect, unless it leads to another server: metrics and credentials go to none.
    fn following(&self, from: &Uri, location: &str) -> Result<Uri, CliError> {
        let why = match redirected(from, location) {
            Ok(redirect) if redirect.stays => return Ok(redirect.to),
            Ok(redirect) => {
                format!("it redirects to {}; calmix sends nothing to another server", redirect.server())
            }
            Err(why) => why,
        };
        Err(CliError::failed(format!("{}: {why}", shown(&self.address)))
            .hint("if you trust that server, give its address: --mlflow URL"))
    }

    /// Adds the proxy, timeout and credentials to a request. The caller must have checked that it goes to the server itself,
    /// because the credentials are sent along.
    fn with_config<B>(
        &self,
        mut request: RequestBuilder<B>,
        uri: &Uri,
        left: Duration,
    ) -> Result<RequestBuilder<B>, CliError> {
        if let Some(header) = &self.credentials.header {
            request = request.header(AUTHORIZATION, header);
        }
        Ok(request.config().timeout_global(Some(left)).proxy(proxy_for(uri, variable)?).build())
    }

    /// Turns a failure into a message with a hint.
    fn failure(&self, error: &ureq::Error) -> CliError {
        let (what, hint) = match (tls_failure(error, CERTIFICATES), error) {
            (Some(failure), _) => failure,
            (None, ureq::Error::Timeout(_)) => (
                format!("no complete answer within {} s", self.patience.as_secs()),
                format!("for a slow server, set {TIMEOUT} to more seconds"),
            ),
            (None, ureq::Error::Io(error)) => (error.to_string(), RUNNING.to_owned()),
            (None, error) => (error.to_string(), RUNNING.to_owned()),
        };
        CliError::failed(format!("{}: {}", shown(&self.address), shown(what))).hint(hint)
    }
}

const RUNNING: &str = "is the server running? `mlflow server --port 5000` starts one";

const EXAMPLE: &str =
    "--mlflow https://HOST/PREFIX or http://127.0.0.1:5000, or the same in MLFLOW_TRACKING_URI";
const ELSEWHERE: &str = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead";
