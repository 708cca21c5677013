//! The files of a repository at one commit, as the Hub lists them.

use calmix_io::safe_path::why_unsafe;
use calmix_io::shown::is_command;
use serde::Deserialize;
use serde_json::Value;

use super::content_hash::{ContentHash, hexadecimal};

/// The maximum length of a licence name in characters.
const MAX_LICENCE: usize = 200;

/// The files of a repository at one commit.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The commit, 40 hexadecimal digits.
    pub(crate) commit: String,
    /// The licence that the repository names, if any.
    pub(crate) licence: Option<String>,
    pub(super) files: Vec<HubFile>,
}

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubFile {
    /// A relative path without `..`, checked by [`why_unsafe`].
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// The hash; `None` if the cache does not have it.
    pub(super) hash: Option<ContentHash>,
}

/// The part of the Hub's response that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelInfo {
    sha: String,
    siblings: Vec<Sibling>,
    tags: Option<Vec<String>>,
    card_data: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<LargeFile>,
}

#[derive(Deserialize)]
struct LargeFile {
    sha256: String,
    size: u64,
}

impl Listing {
    /// Parses the response of the Hub.
    ///
    /// # Errors
    /// A description of the problem, as the rest of a sentence.
    pub(super) fn parse(answer: &[u8]) -> Result<Self, String> {
        let info: ModelInfo =
            serde_json::from_slice(answer).map_err(|error| format!("is not a list of files: {error}"))?;
        let commit = hexadecimal(&info.sha, 40).ok_or("names a commit that is not 40 hexadecimal digits")?;
        let mut files = Vec::with_capacity(info.siblings.len());
        for sibling in info.siblings {
            files.push(HubFile::of(sibling)?);
        }
        let licence = licence(info.card_data.as_ref(), &info.tags.unwrap_or_default());
        Ok(Self { commit, licence, files })
    }

    /// Returns the file with this path, if any.
    pub(crate) fn file(&self, path: &str) -> Option<&HubFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl HubFile {
    fn of(sibling: Sibling) -> Result<Self, String> {
        let Sibling { rfilename: path, size, blob_id, lfs } = sibling;
        check_path(&path)?;
        let size = lfs.as_ref().map(|large| large.size).or(size);
        let bytes = size.ok_or_else(|| format!("has no size of {path}"))?;
        let hash = match (&lfs, &blob_id) {
            (Some(large), _) => ContentHash::sha256(&large.sha256),
            (None, Some(id)) => ContentHash::git_blob(id),
            (None, None) => None,
        };
        let hash = hash.ok_or_else(|| format!("has no hash of {path}"))?;
        Ok(Self { path, bytes, hash: Some(hash) })
    }
}

/// Checks the name of a file, which becomes part of URLs and messages.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    let why = why_unsafe(path).or(path.contains(is_command).then_some("has a control character"));
    why.map_or(Ok(()), |why| Err(format!("has a file whose name {why}: {path:?}")))
}

/// Returns the licence of a repository, from its card or its tags.
fn licence(card: Option<&Value>, tags: &[String]) -> Option<String> {
    let named = card.map(|card| &card["license"]);
    let mut names: Vec<&str> = match named {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => tags.iter().filter_map(|tag| tag.strip_prefix("license:")).collect(),
    };
    // `other` is a placeholder; the name is in a second field.
    if let (["other"], Some(name)) = (&names[..], card.and_then(|card| card["license_name"].as_str())) {
        names = vec![name];
    }
    let joined: String = names.join(", ").chars().take(MAX_LICENCE).collect();
    if joined.is_empty() { None } else { Some(joined) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(answer: &Value) -> Result<Listing, String> {
        Listing::parse(answer.to_string().as_bytes())
    }

    fn listed(path: &str) -> Value {
        json!({ "sha": "a".repeat(40), "siblings": [{ "rfilename": path, "size": 1, "blobId": "b".repeat(40) }] })
    }

    #[test]
    fn files_have_sizes_and_hashes() {
        let answer = json!({
            "sha": "A".repeat(40),
            "cardData": { "license": "other", "license_name": "own-terms" },
            "tags": ["license:mit"],
            "unknown": [[[]]],
            "siblings": [
                { "rfilename": "config.json", "size": 3, "blobId": "b".repeat(40), "lfs": null },
                { "rfilename": "onnx/model.onnx", "size": 130, "blobId": "b".repeat(40),
                  "lfs": { "sha256": "c".repeat(64), "size": 9, "pointerSize": 130 } },
            ],
        });
        let listing = parsed(&answer).unwrap();
        assert_eq!(listing.commit, "a".repeat(40));
        assert_eq!(listing.licence.as_deref(), Some("own-terms"));
        let [config, model] = &listing.files[..] else { panic!("{:?}", listing.files) };
        assert_eq!((config.bytes, &config.hash), (3, &ContentHash::git_blob(&"b".repeat(40))));
        assert_eq!((model.bytes, &model.hash), (9, &ContentHash::sha256(&"c".repeat(64))));
    }

    #[test]
    fn licence_comes_from_card_or_tags() {
        let of = |card: Value, tags: &[&str]| {
            licence(Some(&card), &tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(json!({ "license": "mit" }), &["license:x"]).as_deref(), Some("mit"));
        assert_eq!(of(json!({ "license": ["mit", "isc"] }), &[]).as_deref(), Some("mit, isc"));
        assert_eq!(of(json!({}), &["pytorch", "license:isc"]).as_deref(), Some("isc"));
        assert_eq!(of(json!({ "license": "other" }), &[]).as_deref(), Some("other"));
        assert_eq!(of(json!({ "license": 3 }), &[]), None);
        assert_eq!(of(json!(null), &[]), None);
    }

    #[test]
    fn unsafe_names_and_missing_hashes_are_refused() {
        assert!(parsed(&listed("onnx/model.onnx")).is_ok());
        for name in ["../evil", "a/../../b", "/etc/passwd", "a\\b", "C:x", "", "a\u{1b}[2J", "a//b", "a\n"] {
            let error = parsed(&listed(name)).unwrap_err();
            assert!(error.contains("has a file whose name"), "{name}: {error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
        for (key, wrong) in [
            ("blobId", json!("../x")),
            ("blobId", Value::Null),
            ("size", Value::Null),
            ("size", json!(-1)),
            ("size", json!(1e30)),
            ("lfs", json!({ "sha256": "x", "size": 1 })),
        ] {
            let mut answer = listed("model.onnx");
            answer["siblings"][0][key] = wrong.clone();
            assert!(parsed(&answer).is_err(), "{key}: {wrong}");
        }
        let mut answer = listed("model.onnx");
        answer["sha"] = json!("../../x");
        assert!(parsed(&answer).is_err());
        assert!(Listing::parse(b"<html>").is_err());
    }
}
