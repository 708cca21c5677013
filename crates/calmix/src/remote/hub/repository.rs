//! The name of a repository on the Hub with a revision, and names as parts of the path of a URL.

use std::fmt::{self, Write};

use calmix_io::shown::shown;

use crate::error::CliError;

/// The default revision.
const DEFAULT_REVISION: &str = "main";

/// The maximum length of an owner, and of a name.
const MAX_NAME: usize = 96;

/// The maximum length of a revision.
const MAX_REVISION: usize = 255;

/// A repository of models at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    pub(super) owner: String,
    pub(crate) name: String,
    /// The revision: a branch, a tag, a commit, or a reference such as `refs/pr/1`.
    pub(crate) revision: String,
}

impl Repository {
    /// Parses `owner/name` or `owner/name@revision`, by the rules of the Hub.
    pub(crate) fn parse(text: &str) -> Result<Self, CliError> {
        let (id, revision) = text.split_once('@').unwrap_or((text, DEFAULT_REVISION));
        let parts: Vec<&str> = id.split('/').collect();
        let [owner, name] = parts[..] else { return Err(invalid(text)) };
        if !is_name(owner) || !is_name(name) || name.strip_suffix(".git").is_some() {
            return Err(invalid(text));
        }
        if !is_revision(revision) {
            let message = format!("{} is not a revision of a repository", shown(revision));
            return Err(CliError::invalid(message).hint("name a branch, a tag or a commit after the @"));
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned(), revision: revision.to_owned() })
    }

    /// Returns the name of the repository's folder in the Hub's cache. It is unambiguous, because owners and names contain no
    /// `--`.
    pub(super) fn folder_name(&self) -> String {
        format!("{}--{}", self.owner, self.name)
    }

    /// Returns the URL path of the list of files.
    pub(super) fn listing_path(&self) -> String {
        format!("/api/models/{self}/revision/{}?blobs=true", encoded(&self.revision))
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

fn invalid(text: &str) -> CliError {
    CliError::invalid(format!("{} is not the name of a repository", shown(text)))
        .hint("calmix weights get OWNER/NAME, or OWNER/NAME@REVISION, as in the address of its page")
}

fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_outer = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = name.as_bytes();
    name.len() <= MAX_NAME
        && bytes.iter().all(|byte| is_inner(*byte))
        && is_outer(bytes.first())
        && is_outer(bytes.last())
        && !name.contains("..")
        && !name.contains("--")
}

/// Returns whether a text can be a git reference. It is also used as a path in the Hub's cache.
fn is_revision(revision: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./+".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    revision.len() <= MAX_REVISION
        && revision.bytes().all(is_allowed)
        && revision.split('/').all(is_part)
        && !revision.contains("..")
}

/// Percent-encodes a name, including slashes.
pub(super) fn encoded(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Percent-encodes the parts of a path, but not the slashes between them.
pub(super) fn encoded_path(path: &str) -> String {
    path.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_has_owner_name_and_revision() {
        let parsed = Repository::parse("timm/tf_efficientnet_lite0.in1k").unwrap();
        assert_eq!(parsed.to_string(), "timm/tf_efficientnet_lite0.in1k");
        assert_eq!(parsed.revision, "main");
        let parsed = Repository::parse("a/b@refs/pr/1").unwrap();
        assert_eq!(parsed.listing_path(), "/api/models/a/b/revision/refs%2Fpr%2F1?blobs=true");
        assert_eq!(parsed.folder_name(), "a--b");
    }

    #[test]
    fn names_that_the_hub_has_not_are_refused() {
        let long = format!("a/{}", "b".repeat(97));
        for wrong in [
            "",
            "a",
            "a/",
            "/b",
            "a/b/c",
            "../b",
            "a/..",
            "a/.b",
            "a/b.",
            "a/-b",
            "a/b--c",
            "a/b..c",
            "a/b.git",
            "a b/c",
            "a/b\n",
            "a/b?c",
            "a/b#c",
            "a/ä",
            "https://huggingface.co/a/b",
            "a/b@",
            "a/b@..",
            "a/b@../../x",
            "a/b@/x",
            "a/b@x y",
            "a/b@x?y",
            "a/b@x%2F",
            &long,
        ] {
            assert!(Repository::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_plain_characters_stay() {
        assert_eq!(encoded("refs/pr/1"), "refs%2Fpr%2F1");
        assert_eq!(encoded_path("onnx/model v1?.onnx"), "onnx/model%20v1%3F.onnx");
        assert_eq!(encoded("ä#%"), "%C3%A4%23%25");
    }
}
