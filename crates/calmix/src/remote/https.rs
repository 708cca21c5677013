//! HTTP and HTTPS for `calmix push` and `calmix weights get`: addresses, proxies, authorities and redirects.
//!
//! Each of the two has a server, credentials and variables of its own. What they share is here: the variables that curl and
//! Python's requests read too, and what a redirect may do.

mod address;
mod proxy;

use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use calmix_io::shown::shown;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

use crate::error::CliError;

pub(crate) use address::{is_same_server, location, read_address, redirected, warn_if_unencrypted};
pub(crate) use proxy::proxy_for;

/// Redirects that are followed for one request.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Begins the settings of all requests. `certificates` is the variable that names a PEM file of authorities.
pub(crate) fn agent_config(certificates: &str) -> Result<ConfigBuilder<AgentScope>, CliError> {
    Ok(Agent::config_builder()
        .tls_config(tls_config(certificates)?)
        .user_agent(concat!("calmix/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        // Followed here, because only a part of them may be, and credentials must not go along with all of them.
        .max_redirects(0)
        // Servers close idle connections after seconds, some after two; a request must not meet that.
        .max_idle_age(Duration::from_secs(1)))
}

/// Settings of TLS. The environment variable `certificates` may name a PEM file of authorities.
fn tls_config(certificates: &str) -> Result<TlsConfig, CliError> {
    let roots = match variable(certificates) {
        Some(path) => read_certificates(certificates, &path)?,
        None => RootCerts::PlatformVerifier,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder().unversioned_rustls_crypto_provider(provider).root_certs(roots).build())
}

/// Explains a failure of TLS, and what to do; `None` if another part of the request failed.
pub(crate) fn tls_failure(error: &ureq::Error, certificates: &str) -> Option<(String, String)> {
    let error: &rustls::Error = match error {
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref()?,
        ureq::Error::Rustls(error) => error,
        _ => return None,
    };
    Some(match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => (
            "its certificate is not signed by an authority that this machine trusts".to_owned(),
            format!("name the PEM file of the authority that signed it in {certificates}"),
        ),
        // `openssl req -x509` creates such a certificate by default.
        error if error.to_string().contains("CaUsedAsEndEntity") => (
            "its certificate is an authority's own (CA:TRUE), which may not be a server's too".to_owned(),
            format!("make it with CA:FALSE, signed by an authority that you name in {certificates}"),
        ),
        error => (
            error.to_string(),
            format!("{certificates} names a PEM file of the authorities that calmix trusts"),
        ),
    })
}

fn read_certificates(variable: &str, path: &str) -> Result<RootCerts, CliError> {
    let invalid = |what: String| CliError::invalid(format!("{variable}: {}: {what}", shown(path)));
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
