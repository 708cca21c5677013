//! Redirects, which are followed only if they stay on the server that the user named.
//!
//! Requests carry a password or a token and the metrics of a run, so none goes to another server, and none goes back from
//! HTTPS to HTTP. From HTTP to HTTPS is how servers ask for encryption.

use ureq::http::Uri;
use ureq::http::uri::PathAndQuery;

/// Returns the target of a redirect, or why it is not followed, without parts that may be secret.
pub(super) fn redirected(from: &Uri, location: &str) -> Result<Uri, String> {
    let unreadable = || "it redirects to something that is not an address".to_owned();
    // A path of the same server. `//host/path` is one of another, and would be parsed as a path.
    if location.starts_with('/') && !location.starts_with("//") {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(location.parse::<PathAndQuery>().map_err(|_| unreadable())?);
        return Uri::from_parts(parts).map_err(|_| unreadable());
    }
    let to: Uri = location.parse().map_err(|_| unreadable())?;
    let scheme = to.scheme_str().ok_or_else(unreadable)?;
    let host = to.host().ok_or_else(unreadable)?;
    let is_same_host = from.host().is_some_and(|from| from.eq_ignore_ascii_case(host));
    let has_user = to.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let is_encrypted_now = from.scheme_str() == Some("http") && scheme == "https";
    // Another port of the same host may be another user's server.
    let is_same_server = from.scheme() == to.scheme() && port(from) == port(&to);
    if is_same_host && !has_user && (is_encrypted_now || is_same_server) {
        return Ok(to);
    }
    let place = to.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Err(format!(
        "it redirects to {scheme}://{place}; calmix sends nothing to another server or from https to http"
    ))
}

fn port(uri: &Uri) -> Option<u16> {
    let default = match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    };
    uri.port_u16().or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_stays_with_server_and_encryption() {
        let to = |from: &str, location: &str| {
            redirected(&from.parse().unwrap(), location).map(|uri| uri.to_string())
        };
        let plain = "http://a:5000/x?y=z";
        assert_eq!(to(plain, "/b?c=d").unwrap(), "http://a:5000/b?c=d");
        assert_eq!(to(plain, "http://A:5000/b").unwrap(), "http://A:5000/b");
        assert_eq!(to(plain, "https://a/b").unwrap(), "https://a/b");
        assert_eq!(to("https://a/x", "https://a:443/b").unwrap(), "https://a:443/b");
        for refused in [
            "http://b:5000/",
            "http://a.b:5000/",
            "https://b/",
            "http://a:6000/",
            "//b/c",
            "b",
            "",
            "http://u:hunter2@a:5000/",
            "http://a:5000@b/",
            "ftp://a/",
            "/\r\nX-Injected: yes",
        ] {
            let error = to(plain, refused).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = to("https://a/x", "http://a/x").unwrap_err();
        assert!(error.starts_with("it redirects to http://a; "), "{error}");
    }
}
