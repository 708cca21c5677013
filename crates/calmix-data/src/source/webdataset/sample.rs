//! The samples of a shard: adjacent members with the same key.

use std::collections::HashSet;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use calmix_formats::error::FormatProblem;
use calmix_formats::tar::{Refusal, TarMember, TarMembers, TarProblem};
use serde_json::Value;

use crate::error::DataError;

/// Enough for a label of a few digits and metadata of a few kilobytes.
const MAX_LABEL_BYTES: u64 = 1 << 20;

/// A class as written in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Label {
    Number(u64),
    Name(String),
}

#[derive(Debug)]
pub(super) struct Sample {
    pub(super) key: String,
    pub(super) image: Option<TarMember>,
    pub(super) label: Option<Label>,
}

/// Reads a shard sample by sample.
#[derive(Debug)]
pub(super) struct TarSamples<R> {
    path: PathBuf,
    members: TarMembers<R>,
    /// The first member of the next sample, with its key and extension.
    waiting: Option<(String, String, TarMember)>,
    /// Hashes of the keys so far, for detecting duplicates; 64 bits are enough for a shard.
    seen: HashSet<u64>,
}

impl<R: Read + Seek> TarSamples<R> {
    pub(super) fn new(reader: R, path: &Path) -> Result<Self, DataError> {
        let members = TarMembers::new(reader).map_err(|error| DataError::new(path, error))?;
        Ok(Self { path: path.to_owned(), members, waiting: None, seen: HashSet::new() })
    }

    pub(super) fn read(&mut self, member: &TarMember) -> Result<Vec<u8>, DataError> {
        self.members.read(member).map_err(|error| DataError::new(&self.path, error).at(member.name.clone()))
    }

    /// Returns the next sample that has an image or a class.
    pub(super) fn next(&mut self) -> Result<Option<Sample>, DataError> {
        loop {
            let Some((key, extension, member)) = self.next_member()? else { return Ok(None) };
            let hash = blake3::hash(key.as_bytes());
            let hash = hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
            if !self.seen.insert(hash) {
                return Err(self.wrong(&key, "its members are not adjacent, or its key is not unique"));
            }
            let mut sample = Sample { key, image: None, label: None };
            let mut extensions = vec![extension.clone()];
            self.take(&mut sample, &extension, member)?;
            while let Some((key, extension, member)) = self.next_member()? {
                if key != sample.key {
                    self.waiting = Some((key, extension, member));
                    break;
                }
                if extensions.contains(&extension) {
                    return Err(self.wrong(&key, &format!("it has two .{extension} members")));
                }
                self.take(&mut sample, &extension, member)?;
                extensions.push(extension);
            }
            if sample.image.is_some() || sample.label.is_some() {
                return Ok(Some(sample));
            }
        }
    }

    fn next_member(&mut self) -> Result<Option<(String, String, TarMember)>, DataError> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(Some(waiting));
        }
        loop {
            let Some(member) = self.members.next() else { return Ok(None) };
            let member = member.map_err(|error| refused(&self.path, error))?;
            if let Some((key, extension)) = split_name(&member.name) {
                return Ok(Some((key.to_owned(), extension.to_ascii_lowercase(), member)));
            }
        }
    }

    fn take(&mut self, sample: &mut Sample, extension: &str, member: TarMember) -> Result<(), DataError> {
        let label = match extension {
            "jpg" | "jpeg" | "png" | "webp" => {
                if sample.image.replace(member).is_some() {
                    return Err(self.wrong(&sample.key, "it has two images"));
                }
                return Ok(());
            }
            "cls" | "json" => {
                if member.length > MAX_LABEL_BYTES {
                    return Err(self.wrong(&member.name, "the label is larger than 1 MiB"));
                }
                let bytes = self.read(&member)?;
                if extension == "cls" { Some(read_cls(&bytes)) } else { read_json(&bytes).transpose() }
            }
            _ => None,
        };
        let Some(label) = label else { return Ok(()) };
        let label = label.map_err(|what| self.wrong(&member.name, &what))?;
        if sample.label.replace(label.clone()).is_some_and(|other| other != label) {
            return Err(self.wrong(&sample.key, "it has two different classes"));
        }
        Ok(())
    }

    fn wrong(&self, place: &str, what: &str) -> DataError {
        DataError::content(&self.path, what).at(place).hint("create the shard again")
    }
}

fn refused(path: &Path, TarProblem { at, refusal }: TarProblem) -> DataError {
    let hint = match refusal {
        Refusal::Short => "download it again",
        _ => "create it again with regular files only",
    };
    let problem = match refusal {
        Refusal::Io(error) => error.into(),
        other => FormatProblem::Format(other.to_string()),
    };
    DataError::new(path, problem).at(format!("byte {at}")).hint(hint)
}

/// Splits a member's name into key and extension, as webdataset's `base_plus_ext` does; `None` for members that it skips.
fn split_name(name: &str) -> Option<(&str, &str)> {
    let name = name.trim_start_matches("./");
    let base = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = base + name[base..].find('.')?;
    let is_note = name.strip_prefix("__").is_some_and(|rest| {
        let part = rest.split('/').next().unwrap_or_default();
        part.ends_with("__")
    });
    (dot > base && !is_note).then(|| (&name[..dot], &name[dot + 1..]))
}

fn read_cls(bytes: &[u8]) -> Result<Label, String> {
    let text = str::from_utf8(bytes).unwrap_or_default().trim();
    text.parse().map(Label::Number).map_err(|_| "its class is not a non-negative integer".to_owned())
}

fn read_json(bytes: &[u8]) -> Result<Option<Label>, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("invalid JSON: {error}"))?;
    match value.get("label").or_else(|| value.get("cls")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(Label::Name(name.clone()))),
        Some(number) => {
            let number =
                number.as_u64().ok_or_else(|| format!("its class {number} is not a non-negative integer"))?;
            Ok(Some(Label::Number(number)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_as_in_webdataset() {
        assert_eq!(split_name("a/b.c/000.seg.png"), Some(("a/b.c/000", "seg.png")));
        assert_eq!(split_name("./000.jpg"), Some(("000", "jpg")));
        for passed in ["000", "a/.hidden.jpg", ".x", "__meta__", "__notes__/a.jpg", "a.b/c"] {
            assert_eq!(split_name(passed), None, "{passed}");
        }
    }
}
