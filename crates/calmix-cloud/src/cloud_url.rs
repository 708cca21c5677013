//! URLs of object stores and web servers, as given by the user.

use std::fmt;
use std::path::{Path, PathBuf};

use calmix_io::error::{ErrorKind, FileError};
use calmix_io::redacted::redacted;

/// The maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 4096;

/// The protocol of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Amazon S3 and stores with the same protocol.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
    /// A web server.
    Https,
    /// A web server without TLS.
    Http,
}

const SCHEMES: [(&str, Scheme); 5] = [
    ("s3://", Scheme::S3),
    ("gs://", Scheme::Gs),
    ("az://", Scheme::Az),
    ("https://", Scheme::Https),
    ("http://", Scheme::Http),
];

/// A URL: `SCHEME://AUTHORITY/KEY`. The authority is a bucket, a container, or a host with its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudUrl {
    text: String,
    scheme: Scheme,
    authority: usize,
}

impl CloudUrl {
    /// Parses the URL in `path`; `None` if it is a file system path. A path may hold a URL, because recipes and command
    /// lines have one field for both.
    pub fn parse(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        let (start, scheme) = SCHEMES.into_iter().find(|(start, _)| text.starts_with(start))?;
        Some(Self { text: text.trim_end_matches('/').to_owned(), scheme, authority: start.len() })
    }

    /// Returns whether `path` is a URL.
    pub fn is_url(path: &Path) -> bool {
        Self::parse(path).is_some()
    }

    /// Refuses a URL where a file system is required; `what` is the noun for the message, such as "a run folder".
    pub fn refuse(path: &Path, what: &str) -> Result<(), FileError> {
        if !Self::is_url(path) {
            return Ok(());
        }
        let problem = format!("{what} has to be on a file system, not in object storage");
        Err(FileError::mistake(path, problem).hint("name a folder on a local or shared file system"))
    }

    /// Returns the protocol.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the whole URL without trailing slashes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URL as a path, for messages and recipes.
    pub fn to_path(&self) -> PathBuf {
        PathBuf::from(&self.text)
    }

    /// Returns the bucket, the container, or the host with its port.
    pub fn authority(&self) -> &str {
        let rest = self.text.get(self.authority..).unwrap_or_default();
        rest.split_once('/').map_or(rest, |(authority, _)| authority)
    }

    /// Returns the path below the authority, without slashes at its ends.
    pub fn key(&self) -> &str {
        let rest = self.text.get(self.authority..).unwrap_or_default();
        rest.split_once('/').map_or("", |(_, key)| key.trim_matches('/'))
    }

    /// Returns the protocol and the authority, without a path.
    pub(crate) fn base(&self) -> String {
        let length = self.authority + self.authority().len();
        self.text.get(..length).unwrap_or_default().to_owned()
    }

    /// Returns the URL of another key at the same authority.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        let text = if key.is_empty() { self.base() } else { format!("{}/{key}", self.base()) };
        Self { text, scheme: self.scheme, authority: self.authority }
    }

    /// Returns whether it is on a web server, which cannot list files.
    pub(crate) fn is_web(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Http)
    }

    /// Refuses URLs that are unusable or contain a secret, before any part of them is printed or stored.
    ///
    /// # Errors
    /// If it has no bucket or host, a user name, a query, control characters or `..`, or is too long.
    pub fn check(&self) -> Result<(), FileError> {
        let bad = |problem: &str, hint: &str| Err(FileError::mistake(self.to_path(), problem).hint(hint));
        if self.text.len() > MAX_URL_BYTES {
            let problem = format!("the URL has {} bytes, expected at most {MAX_URL_BYTES}", self.text.len());
            return Err(FileError::limit("URL", problem).unless_transient(ErrorKind::Mistake));
        }
        if self.authority().is_empty() {
            return bad("the URL names no bucket or host", "write s3://BUCKET/PREFIX or https://HOST/PATH");
        }
        if self.authority().contains('@') {
            return bad(
                "a user name in a URL would be stored with the run",
                "put the credentials into environment variables, see docs/guides/object-storage.md",
            );
        }
        if self.text.contains(['?', '#']) {
            return bad(
                "a URL with a query would be stored with the run, and it may hold a signature",
                "use credentials in environment variables, see docs/guides/object-storage.md",
            );
        }
        if self.text.chars().any(char::is_control) || self.key().split('/').any(|part| part == "..") {
            return bad("the URL has control characters or `..` in it", "correct the URL");
        }
        Ok(())
    }
}

/// Omits user name, password, query and fragment; [`check`](CloudUrl::check) refuses URLs with these.
impl fmt::Display for CloudUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CloudUrl {
        CloudUrl::parse(Path::new(text)).unwrap()
    }

    #[test]
    fn url_is_told_from_a_path() {
        for path in ["photos", "/data/s3", "s3:/bucket", "ftp://host/a", "./https:"] {
            assert!(!CloudUrl::is_url(Path::new(path)), "{path}");
        }
        let found = url("s3://bucket/a/b/");
        assert_eq!((found.scheme(), found.authority(), found.key()), (Scheme::S3, "bucket", "a/b"));
        assert_eq!(found.with_key("c").as_str(), "s3://bucket/c");
        let web = url("http://127.0.0.1:8080/train-{000..003}.tar");
        assert_eq!((web.authority(), web.key()), ("127.0.0.1:8080", "train-{000..003}.tar"));
        assert_eq!((url("gs://bucket").key(), url("gs://bucket").base()), ("", "gs://bucket".to_owned()));
    }

    #[test]
    fn url_with_secrets_is_refused() {
        for bad in
            ["https://me:word@host/a.tar", "https://host/a.tar?X-Amz-Signature=1", "s3://", "s3://b/../a"]
        {
            let error = url(bad).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mistake);
            assert!(error.hint.is_some());
            for secret in ["word", "Signature", "me:"] {
                assert!(!format!("{error} {}", url(bad)).contains(secret), "{error}");
            }
        }
        assert!(url("az://container/a b/c.tar").check().is_ok());
    }

    #[test]
    fn url_in_place_of_a_folder_is_refused() {
        let error = CloudUrl::refuse(Path::new("s3://bucket/runs"), "a run folder").unwrap_err();
        assert!(error.to_string().starts_with("s3://bucket/runs: a run folder has to be on a file system"));
        assert!(CloudUrl::refuse(Path::new("runs"), "a run folder").is_ok());
    }
}
