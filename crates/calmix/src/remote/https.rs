//! HTTP and HTTPS for `calmix push` and `calmix weights get`: addresses, proxies, certificate authorities and redirects.
//!
//! The two have servers, credentials and variables of their own. They share the variables that curl and Python's requests also
//! read, and the rules for redirects.

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

/// The maximum number of redirects for one request.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Creates the configuration of all requests. `certificates` is the variable that names a PEM file of authorities.
pub(crate) fn agent_config(certificates: &str) -> Result<ConfigBuilder<AgentScope>, CliError> {
    Ok(Agent::config_builder()
        .tls_config(tls_config(certificates)?)
        .user_agent(concat!("calmix/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        // Redirects are followed by calmix, because only some are allowed, and credentials must not be sent along with all of
        // them.
        .max_redirects(0)
        // Servers close idle connections, some after two seconds; a request must not use one that is about to close.
        .max_idle_age(Duration::from_secs(1)))
}

/// Returns the TLS settings. The environment variable `certificates` may name a PEM file of authorities.
fn tls_config(certificates: &str) -> Result<TlsConfig, CliError> {
    let roots = match variable(certificates) {
        Some(path) => read_certificates(certificates, &path)?,
        None => RootCerts::PlatformVerifier,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder().unversioned_rustls_crypto_provider(provider).root_certs(roots).build())
}

/// Explains a failure of TLS, with a hint; `None` if the request failed for another reason.
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

/// Returns an environment variable, if it is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a duration in whole seconds from an environment variable.
pub(crate) fn seconds(name: &str, default: Duration) -> Result<Duration, CliError> {
    match variable(name).map(|seconds| seconds.parse::<u32>()) {
        None => Ok(default),
        Some(Ok(seconds @ 1..)) => Ok(Duration::from_secs(seconds.into())),
        Some(_) => Err(CliError::invalid(format!("{name} is not a number of seconds"))),
    }
}
