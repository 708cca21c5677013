//! A tracking server: JSON requests and responses over HTTP or HTTPS.
//!
//! The configuration is the address and MLflow's own environment variables, so a shell that is set up for MLflow's Python client
//! is set up for calmix.

use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use calmix_io::shown::shown;
use serde_json::Value;
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderValue, Uri};
use ureq::{Agent, RequestBuilder};

use crate::error::CliError;
use crate::remote::https::{
    MAX_REDIRECTS, agent_config, location, proxy_for, read_address, redirected, seconds, tls_failure,
    variable, warn_if_unencrypted,
};

/// The default of `MLFLOW_HTTP_REQUEST_TIMEOUT`: the time limit for a complete response, including redirects.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The maximum size of a response in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The rate at which a file is sent at least.
const MIN_BYTES_PER_SECOND: u64 = 100_000;

const CERTIFICATES: &str = "MLFLOW_TRACKING_SERVER_CERT_PATH";
const TIMEOUT: &str = "MLFLOW_HTTP_REQUEST_TIMEOUT";

/// A server that requests are sent to.
pub(crate) struct Server {
    /// The address, without a trailing slash, a user or a password.
    pub(crate) address: String,
    pub(super) credentials: Credentials,
    agent: Agent,
    timeout: Duration,
}

/// The response of a server.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The body; null if it is not JSON, such as the page of a proxy.
    pub(super) body: Value,
}

/// A request to a server.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    /// GET with a query of one key and its value, which is percent-encoded.
    Get(&'a str, &'a str),
    Post(&'a Value),
    Patch(&'a Value),
    /// PUT with the content of a file.
    Put(&'a [u8]),
}

impl Server {
    /// Creates the server with the settings of the environment; it does not connect yet.
    pub(crate) fn new(address: &str) -> Result<Self, CliError> {
        let uri =
            read_address(address, "the address of the tracking server", ADDRESS_HINT, CREDENTIALS_HINT)?;
        let credentials = Credentials::read(variable)?;
        if credentials.header.is_some() {
            warn_if_unencrypted(&uri);
        }
        let timeout = seconds(TIMEOUT, DEFAULT_TIMEOUT)?;
        let config = agent_config(CERTIFICATES)?.accept("application/json");
        let address = uri.to_string().trim_end_matches('/').to_owned();
        Ok(Self { address, credentials, agent: config.build().into(), timeout })
    }

    /// Sends a request to a path below the address.
    pub(super) fn send(&self, path: &str, request: Request<'_>) -> Result<Answer, CliError> {
        let deadline = Instant::now() + self.timeout + upload_time(request);
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
                    // The address of a redirect already contains the query.
                    if is_first { get.query(key, value).call() } else { get.call() }
                }
                Request::Post(body) => {
                    let post = self.with_config(self.agent.post(&uri), &uri, left)?;
                    post.content_type("application/json").send(body.to_string())
                }
                Request::Patch(body) => {
                    let patch = self.with_config(self.agent.patch(&uri), &uri, left)?;
                    patch.content_type("application/json").send(body.to_string())
                }
                Request::Put(content) => {
                    let put = self.with_config(self.agent.put(&uri), &uri, left)?;
                    put.content_type("application/octet-stream").send(content)
                }
            }
            .map_err(failed)?;
            let Some(location) = location(&response) else {
                let bytes = response
                    .body_mut()
                    .with_config()
                    .limit(MAX_ANSWER_BYTES)
                    .read_to_vec()
                    .map_err(failed)?;
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                return Ok(Answer { status: response.status().as_u16(), body });
            };
            uri = self.following(&uri, &location)?;
            is_first = false;
        }
        Err(CliError::failed(format!("{}: more than {MAX_REDIRECTS} redirects", shown(&self.address))))
    }

    /// Returns the target of a redirect; refuses another server, which must get neither metrics nor credentials.
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

    /// Adds the proxy, timeout and credentials to a request. The caller must have checked that it goes to the server itself.
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

    /// Explains a failed request.
    fn failure(&self, error: &ureq::Error) -> CliError {
        let (what, hint) = match (tls_failure(error, CERTIFICATES), error) {
            (Some(failure), _) => failure,
            (None, ureq::Error::Timeout(_)) => (
                format!("no complete answer within {} s", self.timeout.as_secs()),
                format!("for a slow server, set {TIMEOUT} to more seconds"),
            ),
            (None, ureq::Error::Io(error)) => (error.to_string(), SERVER_HINT.to_owned()),
            (None, error) => (error.to_string(), SERVER_HINT.to_owned()),
        };
        CliError::failed(format!("{}: {}", shown(&self.address), shown(what))).hint(hint)
    }
}

/// Returns the time that the content of a file may take, beside the time for the response.
fn upload_time(request: Request<'_>) -> Duration {
    match request {
        Request::Put(content) => Duration::from_secs(content.len() as u64 / MIN_BYTES_PER_SECOND),
        Request::Get(..) | Request::Post(_) | Request::Patch(_) => Duration::ZERO,
    }
}

const SERVER_HINT: &str = "is the server running? `mlflow server --port 5000` starts one";

const ADDRESS_HINT: &str =
    "--mlflow https://HOST/PREFIX or http://127.0.0.1:5000, or the same in MLFLOW_TRACKING_URI";
const CREDENTIALS_HINT: &str = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead";

const TOKEN: &str = "MLFLOW_TRACKING_TOKEN";
const USERNAME: &str = "MLFLOW_TRACKING_USERNAME";
const PASSWORD: &str = "MLFLOW_TRACKING_PASSWORD";

/// The hint for a server that denies access.
pub(super) const UNAUTHORISED_HINT: &str =
    "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN";

/// A password or a token, if any. Not `Debug`, so that it is not printed by accident.
pub(crate) struct Credentials {
    /// The value of `Authorization`.
    pub(super) header: Option<HeaderValue>,
    secrets: Vec<String>,
}

impl Credentials {
    /// Reads a user name with a password, or else a token, in MLflow's order.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, CliError> {
        let user = variable(USERNAME).zip(variable(PASSWORD));
        let (value, secrets, name) = if let Some((name, password)) = user {
            let encoded = BASE64_STANDARD.encode(format!("{name}:{password}"));
            (format!("Basic {encoded}"), vec![encoded, password], PASSWORD)
        } else if let Some(token) = variable(TOKEN) {
            (format!("Bearer {token}"), vec![token], TOKEN)
        } else {
            return Ok(Self { header: None, secrets: Vec::new() });
        };
        let mut header = HeaderValue::from_str(&value)
            .map_err(|_| CliError::invalid(format!("{name} contains a character that HTTP cannot send")))?;
        header.set_sensitive(true);
        Ok(Self { header: Some(header), secrets })
    }

    /// Removes the secrets from a text: some servers quote the request in their error.
    pub(super) fn blanked(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_before_token_and_neither_is_shown() {
        let read = |set: &[(&str, &str)]| {
            let value =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
            Credentials::read(value)
        };
        let header =
            |credentials: &Credentials| credentials.header.clone().map(|v| v.to_str().unwrap().to_owned());
        let token = read(&[(TOKEN, "abc"), (USERNAME, "eve")]).unwrap();
        assert_eq!(header(&token).as_deref(), Some("Bearer abc"));
        // The example of RFC 7617.
        let basic = read(&[(TOKEN, "abc"), (USERNAME, "Aladdin"), (PASSWORD, "open sesame")]).unwrap();
        assert_eq!(header(&basic).as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert_eq!(
            basic.blanked("no 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==', open sesame"),
            "no 'Basic ***', ***"
        );
        assert_eq!(header(&read(&[]).unwrap()), None);
        let error = read(&[(TOKEN, "abc\r\nX: y")]).err().unwrap().to_string();
        assert!(error.starts_with(TOKEN) && !error.contains("abc"), "{error}");
    }
}
