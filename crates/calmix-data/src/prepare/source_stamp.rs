//! Names, lengths and modification times of a dataset's files at preparation, which detect changes without reading the
//! files.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::vectors::VectorPlace;
use serde::{Deserialize, Serialize};

use super::findings::{read_json, write_json};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::source::{SourceSpec, for_each_file};

/// The maximum size of `source.json`, in bytes: two paths and some numbers.
const MAX_STAMP_BYTES: u64 = 1 << 20;

/// The files that a dataset was prepared from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceStamp {
    /// The source specification they were read with.
    pub source: SourceSpec,
    /// Their folder or URL, as text.
    pub root: String,
    pub files: u64,
    /// BLAKE3 of their names and lengths.
    names: String,
    /// BLAKE3 of their modification times, or of the versions that a store reports.
    times: String,
}

/// The difference between a prepared dataset and the current files.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stale {
    /// It was prepared from another folder.
    OtherFolder {
        /// The folder it was prepared from.
        prepared_from: String,
    },
    /// It was prepared with another source specification.
    OtherSource {
        /// The specification it was prepared with.
        prepared_as: SourceSpec,
    },
    /// The number of files has changed.
    OtherCount {
        /// The number of files at preparation.
        before: u64,
        /// The current number of files.
        now: u64,
    },
    /// Files have other names, lengths or contents.
    Changed,
}

impl SourceStamp {
    /// The name of the file beside the table.
    pub const FILE: &str = "source.json";

    /// Stamps the files below `root` that `source` would read.
    pub fn take(source: &SourceSpec, root: &Path) -> Result<Self, DataError> {
        if let Some(url) = CloudUrl::parse(root) {
            return Self::take_remote(source, &url);
        }
        let real = root.canonicalize().map_err(|error| DataError::new(root, error))?;
        let folder = VectorPlace::find(root)?.folder;
        let (mut files, mut names, mut times) = (0, blake3::Hasher::new(), blake3::Hasher::new());
        for_each_file(source, root, &mut |name| {
            let path = folder.join(name);
            let Ok(found) = fs::metadata(&path) else { return Ok(()) };
            files += 1;
            add_text(&mut names, name);
            names.update(&found.len().to_le_bytes());
            let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            times.update(&changed.map_or(0, |time| time.as_nanos()).to_le_bytes());
            Ok(())
        })?;
        let root = real.to_string_lossy().into_owned();
        Ok(Self { source: source.clone(), root, files, names: hex(&names), times: hex(&times) })
    }

    fn take_remote(source: &SourceSpec, url: &CloudUrl) -> Result<Self, DataError> {
        let mut names = blake3::Hasher::new();
        let mut times = blake3::Hasher::new();
        let remote = RemoteFolder::open(url)?;
        for object in remote.objects() {
            add_text(&mut names, &object.name);
            names.update(&object.size.to_le_bytes());
            add_text(&mut times, &object.version);
        }
        let files = remote.objects().len() as u64;
        let root = url.as_str().to_owned();
        Ok(Self { source: source.clone(), root, files, names: hex(&names), times: hex(&times) })
    }

    /// Reads the stamp of the dataset in the folder `prepared`; `None` if an earlier version prepared it.
    pub fn read(prepared: &Path) -> Result<Option<Self>, DataError> {
        let path = prepared.join(Self::FILE);
        if path.exists() { read_json(&path, MAX_STAMP_BYTES).map(Some) } else { Ok(None) }
    }

    pub(super) fn write(&self, prepared: &Path) -> Result<(), DataError> {
        write_json(&prepared.join(Self::FILE), self)
    }

    /// Returns how the `dataset` with this stamp differs from the files below `root`; `None` if it is up to date. If only
    /// the times differ, as after copying, the files are read and compared.
    pub fn stale(
        &self,
        dataset: &Dataset,
        source: &SourceSpec,
        root: &Path,
    ) -> Result<Option<Stale>, DataError> {
        let now = Self::take(&self.source, root)?;
        let is_same = (self.files, &self.names) == (now.files, &now.names);
        if !is_same && self.root != now.root {
            return Ok(Some(Stale::OtherFolder { prepared_from: self.root.clone() }));
        }
        if !source.accepts(&self.source) {
            return Ok(Some(Stale::OtherSource { prepared_as: self.source.clone() }));
        }
        if self.files != now.files {
            return Ok(Some(Stale::OtherCount { before: self.files, now: now.files }));
        }
        if !is_same {
            return Ok(Some(Stale::Changed));
        }
        if self.times == now.times {
            return Ok(None);
        }
        // These may have been unpacked, with labels from another file, so verifying the table would only compare it with
        // itself.
        if matches!(self.source, SourceSpec::Vectors { .. } | SourceSpec::Parquet { .. }) {
            return Ok(Some(Stale::Changed));
        }
        match dataset.verify() {
            Ok(()) => Ok(None),
            Err(DataError::File(FormatError { problem: FormatProblem::Changed(_), .. })) => {
                Ok(Some(Stale::Changed))
            }
            Err(error) => Err(error),
        }
    }
}

fn add_text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
}

fn hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().to_string()
}
