//! The address of a server, as the user gives it.

use std::net::IpAddr;

use ureq::http::Uri;

use crate::error::CliError;
use crate::terminal::warn;

/// Reads the address of a server: `what` names it in messages, `example` is the hint for an invalid one, and `credentials` says
/// where a password belongs. No error quotes the address: it may hold a password, also where it cannot be parsed.
pub(crate) fn read_address(
    address: &str,
    what: &str,
    example: &str,
    credentials: &str,
) -> Result<Uri, CliError> {
    let invalid = |problem: &str| CliError::invalid(format!("{what} {problem}")).hint(example);
    let uri: Uri = address.parse().map_err(|_| invalid("is not an address"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(invalid("begins neither with https:// nor with http://"));
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        // Every user of the machine can read the command line.
        return Err(CliError::invalid(format!("{what} has a user name or password in it")).hint(credentials));
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

/// Whether scheme, host and port of two addresses are the same. Another port of a host may be another user's server.
pub(crate) fn is_same_server(one: &Uri, other: &Uri) -> bool {
    one.scheme() == other.scheme() && has_same_host(one, other) && port(one) == port(other)
}

pub(super) fn has_same_host(one: &Uri, other: &Uri) -> bool {
    let host = one.host().unwrap_or_default();
    !host.is_empty() && other.host().is_some_and(|other| other.eq_ignore_ascii_case(host))
}

/// Warns if a password or a token goes over a network in plain text.
pub(crate) fn warn_if_unencrypted(uri: &Uri) {
    if uri.scheme_str() == Some("http") && !is_this_machine(uri) {
        warn("the password or token is sent unencrypted: use https://, or a server on this machine");
    }
}

fn port(uri: &Uri) -> Option<u16> {
    let default = match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    };
    uri.port_u16().or(default)
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|at| at.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_http_or_https_without_credentials() {
        let read = |address: &str| read_address(address, "the address", "example", "elsewhere");
        for right in ["http://127.0.0.1:5000/", "https://tracking/mlflow/", "http://[::1]:5000/"] {
            assert_eq!(read(right).unwrap().to_string(), right);
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
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with("the address ") && !error.contains("hun"), "{error}");
        }
    }

    #[test]
    fn same_server_needs_scheme_host_and_port() {
        let same = |one: &str, other: &str| is_same_server(&one.parse().unwrap(), &other.parse().unwrap());
        assert!(same("https://a/x", "https://A:443/y"));
        for other in ["http://a/", "https://a:444/", "https://b/", "https://a.b/"] {
            assert!(!same("https://a/", other), "{other}");
        }
        assert!(!same("/x", "/y"), "two paths name no server");
    }
}
