//! Requests to the Hub, and to the storage that it redirects to.

use std::time::Duration;

use calmix_io::shown::shown;
use ureq::http::header::{AUTHORIZATION, RANGE};
use ureq::http::{Response, StatusCode, Uri};
use ureq::{Agent, Body};

use super::failure::{Failure, Refused, Retries, refusal};
use super::listing::Listing;
use super::repository::Repository;
use super::variables::{HubVariables, OFFLINE, TIMEOUT, Token};
use crate::error::CliError;
use crate::remote::https::{
    MAX_REDIRECTS, agent_config, is_same_server, location, proxy_for, redirected, tls_failure, variable,
};

/// The variable that names a PEM file of authorities, as for curl and Python's httpx.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// The maximum size of a list of files in bytes.
const MAX_LISTING: u64 = 32 << 20;

/// The time limit for the list of files, in timeouts.
const LISTING_TIMEOUT_FACTOR: u32 = 4;

/// The Hub.
pub(super) struct HubClient<'a> {
    variables: &'a HubVariables,
    agent: Agent,
}

impl<'a> HubClient<'a> {
    /// Creates the client; it does not connect yet.
    pub(super) fn new(variables: &'a HubVariables) -> Result<Self, CliError> {
        let timeout = Some(variables.timeout);
        let config = agent_config(CERTIFICATES)?
            // Request no compression: sizes and hashes are those of the files themselves.
            .accept_encoding("identity")
            .timeout_resolve(timeout)
            .timeout_connect(timeout)
            .timeout_recv_response(timeout)
            // A large file may take hours, but a single read may not.
            .timeout_per_read(timeout)
            .timeout_per_write(timeout);
        Ok(Self { variables, agent: config.build().into() })
    }

    /// Requests the list of the files of a repository.
    pub(super) fn listing(&self, repository: &Repository) -> anyhow::Result<Listing> {
        let mut retries = Retries::default();
        loop {
            match self.try_listing(repository) {
                Ok(listing) => return Ok(listing),
                Err(failure) => retries.wait_after(failure)?,
            }
        }
    }

    fn try_listing(&self, repository: &Repository) -> Result<Listing, Failure> {
        let within = self.variables.timeout * LISTING_TIMEOUT_FACTOR;
        let mut response = self.get(repository, &repository.listing_path(), 0, Some(within))?;
        let body = response.body_mut().with_config().limit(MAX_LISTING).read_to_vec();
        let body = body.map_err(|error| self.failure(&error))?;
        let listing = Listing::parse(&body).map_err(|what| {
            CliError::failed(format!("{}: the answer {what}", shown(&self.variables.endpoint))).hint(
                "is HF_ENDPOINT the address of a Hub? A proxy or a login page of the network may have answered instead",
            )
        })?;
        Ok(listing)
    }

    /// Requests a path of the Hub, from the byte `offset` on, and follows redirects. `within` limits the time of the whole
    /// response.
    ///
    /// The token is sent to the Hub only. A redirect to another server drops it for good, so that no other server can get it by
    /// redirecting back.
    pub(super) fn get(
        &self,
        repository: &Repository,
        path: &str,
        offset: u64,
        within: Option<Duration>,
    ) -> Result<Response<Body>, Failure> {
        let HubVariables { endpoint, uri: hub, token, .. } = self.variables;
        let mut uri: Uri =
            format!("{endpoint}{path}").parse().map_err(|error: ureq::http::uri::InvalidUri| {
                CliError::invalid(format!("{}: {error}", shown(endpoint)))
            })?;
        let mut token: Option<&Token> = token.as_ref();
        for _ in 0..=MAX_REDIRECTS {
            if !is_same_server(hub, &uri) {
                token = None;
            }
            let mut request = self.agent.get(&uri);
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, token.header.clone());
            }
            if offset > 0 {
                request = request.header(RANGE, format!("bytes={offset}-"));
            }
            let config = request.config().timeout_global(within).proxy(proxy_for(&uri, variable)?);
            let response = config.build().call().map_err(|error| self.failure(&error))?;
            let Some(location) = location(&response) else {
                // If the offset is refused, the caller starts again from 0.
                if response.status().is_success() || response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
                    return Ok(response);
                }
                let is_hub = is_same_server(hub, &uri);
                let refused = Refused { endpoint, repository, token: self.variables.token.as_ref(), is_hub };
                return Err(refusal(&refused, &response));
            };
            let redirect = redirected(&uri, &location);
            let redirect = redirect.map_err(|why| CliError::failed(format!("{}: {why}", shown(endpoint))))?;
            uri = redirect.to;
        }
        Err(CliError::failed(format!("{}: more than {MAX_REDIRECTS} redirects", shown(endpoint))).into())
    }

    /// Explains a request that got no response or an incomplete one.
    pub(super) fn failure(&self, error: &ureq::Error) -> Failure {
        let endpoint = shown(&self.variables.endpoint);
        let failed =
            |what: &str, hint: &str| CliError::failed(format!("{endpoint}: {}", shown(what))).hint(hint);
        if let Some((what, hint)) = tls_failure(error, CERTIFICATES) {
            return failed(&what, &hint).into();
        }
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                failed("cannot connect: no answer", NO_NETWORK_HINT).into()
            }
            ureq::Error::Timeout(_) => {
                let what = format!("no answer within {} s", self.variables.timeout.as_secs());
                Failure::passing(failed(&what, &format!("for a slow network, set {TIMEOUT} to more seconds")))
            }
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                failed("cannot connect: connection refused", NO_NETWORK_HINT).into()
            }
            ureq::Error::HostNotFound => failed("cannot connect: no such host", NO_NETWORK_HINT).into(),
            ureq::Error::Io(error) => {
                Failure::passing(failed(&format!("the connection broke: {error}"), BROKEN_CONNECTION_HINT))
            }
            ureq::Error::ConnectProxyFailed(why) => {
                failed(&format!("the proxy refused: {why}"), NO_NETWORK_HINT).into()
            }
            ureq::Error::Protocol(error) => {
                failed(&format!("not an answer of HTTP: {error}"), "is HF_ENDPOINT the address of a Hub?")
                    .into()
            }
            error => failed(&error.to_string(), NO_NETWORK_HINT).into(),
        }
    }
}

/// The hint for a missing network.
const NO_NETWORK_HINT: &str = "behind a proxy, set https_proxy; without a network, copy the model here from another machine: \
                          `calmix weights add FILE` takes safetensors, network.weights also the folder of an ONNX model";

/// The hint for a connection that breaks repeatedly.
const BROKEN_CONNECTION_HINT: &str =
    "try again later; the same command continues. Behind a proxy, set https_proxy";

/// Returns the hint for a model that is not in the cache.
pub(super) fn offline_hint() -> String {
    format!("without {OFFLINE} calmix downloads it; or {NO_NETWORK_HINT}")
}
