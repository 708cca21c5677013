//! Redirects, which the caller follows by hand: it decides what another server may get.
//!
//! Requests carry a password or a token, so none goes back from HTTPS to HTTP. From HTTP to HTTPS is how servers ask for
//! encryption.

use ureq::Body;
use ureq::http::header::LOCATION;
use ureq::http::uri::PathAndQuery;
use ureq::http::{Response, Uri};

use super::address::{has_same_host, is_same_server};

/// Where a redirect leads.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) to: Uri,
    /// Whether the server stays the same, or begins to encrypt.
    pub(crate) stays: bool,
}

impl Redirect {
    /// The server that it leads to, without parts that may be secret.
    pub(crate) fn server(&self) -> String {
        server(&self.to)
    }
}

/// Returns the target of a redirect that keeps the method of the request.
pub(crate) fn location(response: &Response<Body>) -> Option<String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// Returns where a redirect leads, or why it is not followed, without parts that may be secret.
pub(crate) fn redirected(from: &Uri, location: &str) -> Result<Redirect, String> {
    let unreadable = || "it redirects to something that is not an address".to_owned();
    // A path of the same server. `//host/path` is one of another, and would be parsed as a path.
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
