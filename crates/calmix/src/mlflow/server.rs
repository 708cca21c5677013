//! A tracking server: one JSON request, one JSON answer, over HTTP or HTTPS.
//!
//! The address of the server and the environment decide everything; the variables are MLflow's own, so that a shell that
//! is set up for MLflow's Python client is set up for calmix.

use std::env;
use std::fs;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use calmix_io::shown::shown;
use serde_json::Value;
use ureq::http::header::{AUTHORIZATION, LOCATION};
use ureq::http::{Response, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, RequestBuilder};

use super::credentials::Credentials;
use super::proxy::proxy_for;
use super::redirect::redirected;
use crate::error::CliError;
use crate::terminal::warn;

/// The default of `MLFLOW_HTTP_REQUEST_TIMEOUT`: how long a complete answer may take, with its redirects.
const PATIENCE: Duration = Duration::from_mins(1);

/// Bytes of the longest answer.
const LONGEST: u64 = 64 << 20;

const MOST_REDIRECTS: usize = 5;

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
        let uri = read_address(address)?;
        let credentials = Credentials::read(variable)?;
        if credentials.header.is_some() && uri.scheme_str() == Some("http") && !is_this_machine(&uri) {
            warn("the password or token is sent unencrypted: use https://, or a server on this machine");
        }
        let patience = match variable(TIMEOUT).map(|seconds| seconds.parse::<u32>()) {
            None => PATIENCE,
            Some(Ok(seconds @ 1..)) => Duration::from_secs(seconds.into()),
            Some(_) => return Err(CliError::invalid(format!("{TIMEOUT} is not a number of seconds"))),
        };
        let config = Agent::config_builder()
            .tls_config(tls()?)
            .user_agent(concat!("calmix/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .http_status_as_error(false)
            // Followed here, because only a part of them may be, and a POST has to stay one.
            .max_redirects(0)
            // Servers close idle connections after seconds, some after two; a request must not meet that.
            .max_idle_age(Duration::from_secs(1));
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
        for _ in 0..=MOST_REDIRECTS {
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
            uri = redirected(&uri, &location).map_err(|why| {
                CliError::failed(format!("{}: {why}", shown(&self.address)))
                    .hint("if you trust that server, give its address: --mlflow URL")
            })?;
            is_first = false;
        }
        Err(CliError::failed(format!("{}: more than {MOST_REDIRECTS} redirects", shown(&self.address))))
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
        let inner = match error {
            ureq::Error::Io(error) => error.get_ref().and_then(|error| error.downcast_ref()),
            ureq::Error::Rustls(error) => Some(error),
            _ => None,
        };
        let (what, hint) = match (error, inner) {
            (_, Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))) => (
                "its certificate is not signed by an authority that this machine trusts".to_owned(),
                format!("name the PEM file of the authority that signed it in {CERTIFICATES}"),
            ),
            // `openssl req -x509` creates such a certificate by default.
            (_, Some(error)) if error.to_string().contains("CaUsedAsEndEntity") => (
                "its certificate is an authority's own (CA:TRUE), which may not be a server's too".to_owned(),
                format!("make it with CA:FALSE, signed by an authority that you name in {CERTIFICATES}"),
            ),
            (_, Some(error)) => (
                error.to_string(),
                format!("{CERTIFICATES} names a PEM file of the authorities that calmix trusts"),
            ),
            (ureq::Error::Timeout(_), _) => (
                format!("no complete answer within {} s", self.patience.as_secs()),
                format!("for a slow server, set {TIMEOUT} to more seconds"),
            ),
            (ureq::Error::Io(error), _) => (error.to_string(), RUNNING.to_owned()),
            (error, _) => (error.to_string(), RUNNING.to_owned()),
        };
        CliError::failed(format!("{}: {}", shown(&self.address), shown(what))).hint(hint)
    }
}

const RUNNING: &str = "is the server running? `mlflow server --port 5000` starts one";

/// The environment variable of a name, if it is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the target of a redirect that keeps the method of the request.
fn location(response: &Response<Body>) -> Option<String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// Reads the address of a server. No error quotes it: it may hold a password, also where it cannot be parsed.
fn read_address(address: &str) -> Result<Uri, CliError> {
    let invalid = |what: &str| {
        CliError::invalid(format!("the address of the tracking server {what}"))
            .hint("--mlflow https://HOST/PREFIX or http://127.0.0.1:5000, or the same in MLFLOW_TRACKING_URI")
    };
    let uri: Uri = address.parse().map_err(|_| invalid("is not an address"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(invalid("begins neither with https:// nor with http://"));
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        // Every user of the machine can read the command line.
        return Err(CliError::invalid(
            "the address of the tracking server has a user name or password in it",
        )
        .hint("set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead"));
    }
    let host = uri.host().unwrap_or_default();
    // An invalid port would be ignored, and the default port used.
    let expected = uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    if host.is_empty() || authority != expected {
        return Err(invalid("has no valid host and port"));
    }
    if address.contains(['?', '#']) {
        return Err(invalid("has a query or a fragment"));
    }
    Ok(uri)
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|at| at.is_loopback())
}

/// How servers are verified: against the authorities of the system, where companies install theirs, or against those in a
/// file of the user's.
fn tls() -> Result<TlsConfig, CliError> {
    let roots = match variable(CERTIFICATES) {
        Some(path) => read_certificates(&path)?,
        None => RootCerts::PlatformVerifier,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder().unversioned_rustls_crypto_provider(provider).root_certs(roots).build())
}

fn read_certificates(path: &str) -> Result<RootCerts, CliError> {
    let invalid = |what: String| CliError::invalid(format!("{CERTIFICATES}: {}: {what}", shown(path)));
    let pem = fs::read(path).map_err(|error| invalid(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| invalid(error.to_string()))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(invalid("the file has no certificate in PEM format".to_owned()));
    }
    Ok(certificates.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_http_or_https_without_credentials() {
        let read = |address: &str| read_address(address).ok().map(|uri| uri.to_string());
        for right in ["http://127.0.0.1:5000/", "https://tracking/mlflow/", "http://[::1]:5000/"] {
            assert_eq!(read(right).as_deref(), Some(right));
        }
        let wrong = [
            "a:5000",
            "databricks",
            "sqlite:///mlflow.db",
            "http://",
            "http://a:b",
            "http://a:99999",
            "http://a:",
            "http://u@a",
            "http://u:hunter2@a",
            "http://u:hun ter2@a",
            "http://a/b?c",
            "http://a/b#c",
            "http://a b",
        ];
        for wrong in wrong {
            let error = read_address(wrong).unwrap_err().to_string();
            assert!(!error.contains("hun"), "{error}");
        }
    }
}
