//! The proxy of a request, by the variables that curl and Python's requests read: `http_proxy`, `https_proxy`, `all_proxy` and
//! `no_proxy`, in lower or upper case.
//!
//! ureq would read them too, but it uses `https_proxy` for plain HTTP, uses no proxy if it cannot read or use one, and supports
//! neither spaces in `no_proxy` nor subdomains of a name in it.

use ureq::http::Uri;
use ureq::{Proxy, ProxyProtocol};

use crate::error::CliError;

/// Returns the proxy for an address, if any. No error quotes the proxy's address: it may contain a password.
pub(crate) fn proxy_for(
    uri: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, CliError> {
    let set = |name: &str| variable(name).or_else(|| variable(&name.to_ascii_uppercase()));
    let host = uri.host().unwrap_or_default();
    if set("no_proxy").is_some_and(|list| is_listed(host, &list)) {
        return Ok(None);
    }
    let specific = if uri.scheme_str() == Some("https") { "https_proxy" } else { "http_proxy" };
    let found = [specific, "all_proxy"].into_iter().find_map(|name| Some((name, set(name)?)));
    let Some((name, address)) = found else { return Ok(None) };
    let proxy = Proxy::new(&address).ok();
    let is_http = |proxy: &Proxy| matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
    proxy.filter(is_http).map(Some).ok_or_else(|| {
        CliError::invalid(format!("{name} is not the address of an HTTP proxy"))
            .hint(format!("{name}=http://HOST:PORT, or no_proxy={host} for none"))
    })
}

/// Returns whether a list such as `localhost, .example.com` contains a host or a domain of it.
fn is_listed(host: &str, list: &str) -> bool {
    let host = host.to_ascii_lowercase();
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| {
        let name = entry.trim_start_matches('*').trim_start_matches('.');
        entry == "*" || !name.is_empty() && (host == name || host.ends_with(&format!(".{name}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(uri: &str, set: &[(&str, &str)]) -> Result<Option<String>, CliError> {
        let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        let found = proxy_for(&uri.parse().unwrap(), value)?;
        Ok(found.map(|proxy| proxy.host().to_owned()))
    }

    #[test]
    fn proxy_follows_scheme_and_exceptions() {
        let set = [("http_proxy", "http://plain:3128"), ("HTTPS_PROXY", "secure"), ("ALL_PROXY", "other")];
        let host = |uri: &str| proxy(uri, &set).unwrap().unwrap();
        assert_eq!((host("http://a/"), host("https://a/")), ("plain".to_owned(), "secure".to_owned()));
        assert_eq!(proxy("http://a/", &set[1..]).unwrap().unwrap(), "other");
        assert_eq!(proxy("http://a/", &set[1..2]).unwrap(), None);
        let excepted = |uri: &str| {
            let set = [("all_proxy", "other"), ("NO_PROXY", "localhost, 10.0.0.1,.a.org,*.b.org")];
            proxy(uri, &set).unwrap().is_none()
        };
        for uri in ["http://localhost:1/", "http://10.0.0.1/", "http://x.A.org/", "http://b.org/"] {
            assert!(excepted(uri), "{uri}");
        }
        for uri in ["http://ba.org/", "http://110.0.0.1/", "http://localhost.c/"] {
            assert!(!excepted(uri), "{uri}");
        }
        assert_eq!(proxy("http://a/", &[("all_proxy", "other"), ("no_proxy", "*")]).unwrap(), None);
        for wrong in ["socks5://u:hunter2@a", "u:hun ter2@a"] {
            let error = proxy("http://a/", &[("all_proxy", wrong)]).unwrap_err().to_string();
            assert!(error.starts_with("all_proxy ") && !error.contains("hun"), "{error}");
        }
    }
}
