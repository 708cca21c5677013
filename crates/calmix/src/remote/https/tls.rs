//! How servers are verified: against the authorities of the system, where companies install theirs, or against those in a
//! file of the user's.

use std::fs;
use std::sync::Arc;

use calmix_io::shown::shown;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::variable::variable;
use crate::error::CliError;

/// Settings of TLS. The environment variable `certificates` may name a PEM file of authorities.
pub(super) fn tls_config(certificates: &str) -> Result<TlsConfig, CliError> {
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
