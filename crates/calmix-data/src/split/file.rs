//! The file `split.json`: written atomically, checked when it is read.
//!
//! A small split lists its ids, so that it can be published and read by any program. A large drawn split is a function of
//! its plan and the dataset: the file contains the counts and the hash of its ids, and reading draws it again. This keeps
//! the file within the limit that a run can read back. The unlabelled samples are a function of the plan, too, unless a list
//! chose them: then their ids are stored as differences, two or three bytes each.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use calmix_formats::error::FormatProblem;
use calmix_io::atomic_file;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{LabelSplit, Rule, Shortfall, SplitPlan, VERSION, check_ids, ranges};
use crate::dataset::Dataset;
use crate::error::DataError;

/// The maximum size of a `split.json` to read, in bytes: the ids of more than ten million labelled samples.
const MAX_BYTES: u64 = 256 << 20;
/// The number of labels up to which a drawn split lists its ids instead of a hash: about a megabyte of ids.
const MAX_LISTED: usize = 1 << 17;

/// The content of `split.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitFile<'a> {
    version: u32,
    dataset: Cow<'a, str>,
    plan: Cow<'a, SplitPlan>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ids")]
    labelled: Option<Cow<'a, [u64]>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ids")]
    validation: Option<Cow<'a, [u64]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawn: Option<DrawnIds>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_differences",
        deserialize_with = "differences"
    )]
    unlabelled: Option<Arc<[u64]>>,
    short: Cow<'a, [Shortfall]>,
}

/// The counts and the hash that replace the ids of a large split.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrawnIds {
    labelled: u64,
    validation: u64,
    blake3: String,
}

impl LabelSplit {
    /// The maximum size of the file in a run, in bytes: some five million given labels, or twenty million listed unlabelled
    /// samples.
    pub const MAX_STORED_BYTES: u64 = 64 << 20;

    /// Encodes the file.
    ///
    /// # Errors
    /// If the given labels or the listed unlabelled samples are more than what a run can read back.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatProblem> {
        let list = self.plan.rule == Rule::Given || self.labelled.len() + self.validation.len() <= MAX_LISTED;
        let file = SplitFile {
            version: self.version,
            dataset: (&self.dataset).into(),
            plan: Cow::Borrowed(&self.plan),
            labelled: list.then(|| (&self.labelled).into()),
            validation: list.then(|| (&self.validation).into()),
            drawn: (!list).then(|| self.drawn_ids()),
            unlabelled: self.pool.clone(),
            short: (&self.short).into(),
        };
        let mut bytes = serde_json::to_vec(&file).map_err(|error| FormatProblem::Io(error.into()))?;
        bytes.push(b'\n');
        within(bytes, Self::MAX_STORED_BYTES)
    }

    /// Returns the BLAKE3 of the whole split, plan and ids, in hexadecimal: two splits with the same hash give the same run.
    pub fn hash(&self) -> Result<String, FormatProblem> {
        Ok(blake3::hash(&self.to_bytes()?).to_hex().to_string())
    }

    /// Returns the BLAKE3 of the ids of all labelled samples, in hexadecimal.
    fn hash_of_ids(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for ids in [&self.labelled, &self.validation] {
            hasher.update(&(ids.len() as u64).to_le_bytes());
            for id in ids {
                hasher.update(&id.to_le_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    fn drawn_ids(&self) -> DrawnIds {
        let (labelled, validation) = (self.labelled.len() as u64, self.validation.len() as u64);
        DrawnIds { labelled, validation, blake3: self.hash_of_ids() }
    }

    /// Writes the split atomically: a concurrent reader of `path` reads either the old file or the new one.
    pub fn write(&self, path: &Path) -> Result<(), DataError> {
        let bytes = self.to_bytes().map_err(|problem| DataError::new(path, problem))?;
        atomic_file::write(path, &bytes)?;
        Ok(())
    }

    /// Reads a split of `dataset`.
    ///
    /// # Errors
    /// If it is not a split, belongs to another dataset, or names samples that do not exist, have no label,
    /// occur twice or do not ascend.
    pub fn read(path: &Path, dataset: &Dataset) -> Result<Self, DataError> {
        let cannot = |error| DataError::new(path, error);
        // Opening a pipe would block until another process writes to it.
        if !fs::metadata(path).map_err(cannot)?.is_file() {
            return Err(DataError::content(path, "not a regular file"));
        }
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(cannot)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(DataError::limit(path, format!("larger than {MAX_BYTES} bytes")));
        }
        Self::from_bytes(&bytes, path, dataset)
    }

    /// Decodes a split of `dataset` from the bytes of the file `path`.
    pub fn from_bytes(bytes: &[u8], path: &Path, dataset: &Dataset) -> Result<Self, DataError> {
        let bad = |problem| DataError::new(path, problem).hint("draw the split again");
        let file: SplitFile<'_> =
            serde_json::from_slice(bytes).map_err(|error| bad(FormatProblem::Format(error.to_string())))?;
        let SplitFile { version, dataset: of, plan, labelled, validation, drawn, unlabelled, short } = file;
        let list = |ids: Option<Cow<'_, [u64]>>| ids.map(Cow::into_owned).unwrap_or_default();
        let split = Self {
            version,
            dataset: of.into_owned(),
            plan: plan.into_owned(),
            labelled: list(labelled),
            validation: list(validation),
            pool: None,
            short: short.into_owned(),
        };
        split.check(dataset).map_err(bad)?;
        let Some(drawn) = drawn else {
            return if split.labelled.is_empty() {
                Err(bad(FormatProblem::Content("there are no labelled samples in it".into())))
            } else {
                split.with_pool(unlabelled, dataset).map_err(bad)
            };
        };
        if !split.labelled.is_empty() || !split.validation.is_empty() {
            let problem = "it contains both ids and a hash in place of ids";
            return Err(bad(FormatProblem::Content(problem.into())));
        }
        let split = Self::draw(dataset, split.plan)?;
        if split.drawn_ids() != drawn {
            let problem = "this version of calmix draws other labels than those of the split";
            return Err(DataError::changed(path, problem).hint("use the version of calmix that drew it"));
        }
        split.with_pool(unlabelled, dataset).map_err(bad)
    }

    fn with_pool(self, pool: Option<Arc<[u64]>>, dataset: &Dataset) -> Result<Self, FormatProblem> {
        let Some(ids) = &pool else { return Ok(self) };
        if ids.is_empty() {
            return Err(FormatProblem::Content("its list of unlabelled samples is empty".into()));
        }
        let all = self.all_unlabelled(dataset)?;
        if let Some(id) = ids.iter().find(|&&id| all.position(id).is_none()) {
            let problem = "is listed as unlabelled, but is labelled, held out or in another subset";
            return Err(FormatProblem::Content(format!("sample {id} {problem}")));
        }
        Ok(Self { pool, ..self })
    }

    fn check(&self, dataset: &Dataset) -> Result<(), FormatProblem> {
        if self.version != VERSION {
            let problem = format!(
                "another version of calmix wrote it in format {}; this version reads format {VERSION}",
                self.version
            );
            return Err(FormatProblem::Format(problem));
        }
        if self.dataset != dataset.fingerprint() {
            let short = |fingerprint: &str| fingerprint.chars().take(12).collect::<String>();
            let (theirs, ours) = (short(&self.dataset), short(dataset.fingerprint()));
            return Err(FormatProblem::Changed(format!(
                "the split belongs to the dataset {theirs}, but this is {ours}"
            )));
        }
        self.plan.check()?;
        ranges(dataset, &self.plan.unlabelled)?;
        check_ids(dataset, &self.plan, &self.labelled)?;
        check_ids(dataset, &self.plan, &self.validation)?;
        let both = self.validation.iter().find(|id| self.labelled.binary_search(id).is_ok());
        if let Some(id) = both {
            return Err(FormatProblem::Content(format!("sample {id} is both labelled and held out")));
        }
        self.check_groups(dataset)
    }

    /// Refuses a group with samples on both sides of the split.
    fn check_groups(&self, dataset: &Dataset) -> Result<(), FormatProblem> {
        if !dataset.has_groups() || self.validation.is_empty() {
            return Ok(());
        }
        let mut held_out = BTreeMap::new();
        for &id in &self.validation {
            if let Some(group) = dataset.group(id)? {
                held_out.insert(group, id);
            }
        }
        for id in &self.labelled {
            if let Some(other) = dataset.group(*id)?.and_then(|group| held_out.get(&group)) {
                let problem = format!("sample {id} is labelled and sample {other} of its group is held out");
                return Err(FormatProblem::Content(problem));
            }
        }
        Ok(())
    }
}

fn within(bytes: Vec<u8>, longest: u64) -> Result<Vec<u8>, FormatProblem> {
    let length = bytes.len() as u64;
    if length <= longest {
        return Ok(bytes);
    }
    Err(FormatProblem::Limit(format!(
        "the given labels and the listed unlabelled samples take {length} bytes, but a run stores at most {longest}; keep \
         all labels, a share of them or a number per class instead, or list fewer unlabelled samples"
    )))
}

fn ids<'de, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'a, [u64]>>, D::Error> {
    from.deserialize_seq(Ascending { are_differences: false }).map(|ids| Some(ids.into()))
}

fn differences<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<[u64]>>, D::Error> {
    from.deserialize_seq(Ascending { are_differences: true }).map(|ids| Some(ids.into()))
}

#[expect(clippy::ref_option, reason = "serde passes the field like this")]
fn write_differences<S: Serializer>(ids: &Option<Arc<[u64]>>, to: S) -> Result<S::Ok, S::Error> {
    let mut before = 0;
    let ids = ids.iter().flat_map(|ids| ids.iter());
    to.collect_seq(ids.map(|&id| id - std::mem::replace(&mut before, id)))
}

/// Reads ids and stops at the first one that does not ascend, so that the length of the file bounds the memory.
struct Ascending {
    /// Whether each number after the first is the difference to the previous id.
    are_differences: bool,
}

impl<'de> Visitor<'de> for Ascending {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.are_differences { "the differences between ids" } else { "a list of ids" })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        let mut ids: Vec<u64> = Vec::new();
        while let Some(number) = list.next_element::<u64>()? {
            let id = match ids.last() {
                Some(before) if self.are_differences => before.checked_add(number),
                _ => Some(number),
            };
            let Some(id) = id.filter(|id| ids.last().is_none_or(|before| before < id)) else {
                return Err(A::Error::custom(if self.are_differences {
                    format!("difference {} of the unlabelled samples is {number}", ids.len())
                } else {
                    let before = ids.last().copied().unwrap_or_default();
                    format!("the ids {before} and {number} are not in ascending order")
                }));
            };
            ids.push(id);
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_list_too_long_to_read_is_not_written() {
        assert_eq!(within(vec![0; 8], 8).map(|bytes| bytes.len()).ok(), Some(8));
        let problem = within(vec![0; 9], 8).unwrap_err();
        assert!(
            matches!(&problem, FormatProblem::Limit(text) if text.contains("keep all labels")),
            "{problem}"
        );
    }
}
