//! The address of a server, from the user or from a redirect. The caller follows redirects itself, because it decides what
//! another server may receive.
//!
//! Requests carry a password or a token, so a redirect from HTTPS to HTTP is refused. One from HTTP to HTTPS is followed: servers
//! use it to require encryption.

use std::net::IpAddr;

use ureq::Body;
use ureq::http::header::LOCATION;
use ureq::http::uri::PathAndQuery;
use ureq::http::{Response, Uri};

use crate::error::CliError;
use crate::terminal::warn;

/// Reads the address of a server. `what` names it in messages, `example` is the hint for an invalid one, and `credentials` is the
/// hint on where a password belongs. No error quotes the address: it may contain a password, even if it cannot be parsed.
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
    // Refuse an invalid port, which would be ignored in favour of the default port.
    let expected = uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    if host.is_empty() || authority != expected {
        return Err(invalid("has no valid host and port"));
    }
    if address.contains(['?', '#']) {
        return Err(invalid("has a query or a fragment"));
    }
    Ok(uri)
}

/// Returns whether scheme, host and port of two addresses are the same. Another port of a host may be another user's server.
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

/// The target of a redirect.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) to: Uri,
    /// Whether the server is the same, or the same one with encryption.
    pub(crate) stays: bool,
}

impl Redirect {
    /// Returns the server of the target, without parts that may be secret.
    pub(crate) fn server(&self) -> String {
        server(&self.to)
    }
}

/// Returns the location of a redirect that keeps the method of the request.
pub(crate) fn location(response: &Response<Body>) -> Option<String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// Returns the target of a redirect, or why it is not followed, without parts that may be secret.
pub(crate) fn redirected(from: &Uri, location: &str) -> Result<Redirect, String> {
    let unreadable = || "it redirects to something that is not an address".to_owned();
    // A path on the same server. `//host/path` is on another one, but would be parsed as a path.
    if location.starts_with('/') && !location.starts_with("//") {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(location.parse::<PathAndQuery>().map_err(|_| unreadable())?);
        let to = Uri::from_parts(parts).map_err(|_| unreadable())?;
        return Ok(Redirect { to, stays: true });
    }
    let to: Uri = location.parse().map_err(|_| unreadable())?;
    if !matches!(to.scheme_str(), Some("http" | "https")) {
        return Err(unreadable());
    }
    let authority = to.authority().ok_or_else(unreadable)?;
    if authority.as_str().contains('@') {
        return Err(format!("it redirects to {}; calmix sends no user name from a redirect", server(&to)));
    }
    if from.scheme_str() == Some("https") && to.scheme_str() == Some("http") {
        return Err(format!("it redirects to {}; calmix does not go from https to http", server(&to)));
    }
    let encrypts = from.scheme_str() == Some("http") && to.scheme_str() == Some("https");
    let stays = is_same_server(from, &to) || has_same_host(from, &to) && encrypts;
    Ok(Redirect { to, stays })
}

fn server(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    uri.port_u16().map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
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

    fn follow(from: &str, location: &str) -> Result<Redirect, String> {
        redirected(&from.parse().unwrap(), location)
    }

    #[test]
    fn redirect_knows_server_that_stays() {
        let plain = "http://a:5000/x?y=z";
        for (from, location, to) in [
            (plain, "/b?c=d", "http://a:5000/b?c=d"),
            (plain, "http://A:5000/b", "http://A:5000/b"),
            (plain, "https://a/b", "https://a/b"),
            ("https://a/x", "https://a:443/b", "https://a:443/b"),
        ] {
            let redirect = follow(from, location).unwrap();
            assert_eq!((redirect.to.to_string().as_str(), redirect.stays), (to, true), "{location}");
        }
        for other in ["http://b:5000/", "http://a.b:5000/", "https://b/", "http://a:6000/"] {
            assert!(!follow(plain, other).unwrap().stays, "{other}");
        }
    }

    #[test]
    fn redirect_without_safe_target_is_refused() {
        let plain = "http://a:5000/x?y=z";
        for refused in [
            "//b/c",
            "b",
            "",
            "http://u:hunter2@a:5000/",
            "http://a:5000@b/",
            "ftp://a/",
            "file:///etc/passwd",
            "/\r\nX-Injected: yes",
        ] {
            let error = follow(plain, refused).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = follow("https://a/x", "http://a/x").unwrap_err();
        assert!(error.starts_with("it redirects to http://a; "), "{error}");
    }
}
