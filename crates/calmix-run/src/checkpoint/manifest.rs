//! The file `MANIFEST`: the files of a checkpoint with their hashes, which verify every byte.
//!
//! It is one line of JSON followed by the hash of that line, and must be byte-identical to what calmix would write for its
//! content. Each file has its length and its BLAKE3. Tensors have no checksums of their own: a file with a wrong byte is not
//! used in part, so they would cost a pass over the data and decide nothing.

use std::path::Path;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open::read;
use serde::{Deserialize, Serialize};

use super::files::Written;
use super::read::Fault;
use super::skipped::FORMAT;
use crate::run::{Mark, is_plain};

/// The name of the manifest. No part can have it, because their names are in lower case.
pub(super) const MANIFEST: &str = "MANIFEST";
/// The maximum size of a manifest, in bytes: some twenty thousand files.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;

/// The identity of a checkpoint's run, which must match for a run to continue from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The hash of the recipe.
    pub recipe: String,
    /// The fingerprint of the dataset.
    pub dataset: String,
    /// The hash of the split: which samples keep their label, and which are unlabelled.
    pub split: String,
    /// The number of groups, which are batches with separate plans.
    pub groups: u32,
    /// Micro-batches per group. With `groups`, this determines the layout of the state, whatever the number of processes.
    // The old name of the key is kept, because every byte of a manifest is checked.
    #[serde(rename = "shards")]
    pub micro_batches: u32,
}

/// The manifest of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format version of the checkpoint.
    pub format: u32,
    /// The number of steps before the checkpoint.
    pub step: u64,
    /// The recipe, dataset and split of the run.
    pub identity: Identity,
    /// The end of the file of events.
    pub journal: Mark,
    /// Its files, sorted by name.
    pub files: Vec<Written>,
}

/// The version field, which every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Manifest {
    pub(super) fn new(step: u64, identity: Identity, journal: Mark, mut files: Vec<Written>) -> Self {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Self { format: FORMAT, step, identity, journal, files }
    }

    /// Encodes the manifest, and returns the hash in it, which identifies this checkpoint.
    pub(super) fn to_bytes(&self) -> Result<(Vec<u8>, String), FileProblem> {
        let mut bytes = serde_json::to_vec(self).map_err(|error| FileProblem::Format(error.to_string()))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        bytes.push(b'\n');
        bytes.extend_from_slice(hash.as_bytes());
        bytes.push(b'\n');
        match bytes.len() as u64 {
            ..=MAX_MANIFEST_BYTES => Ok((bytes, hash)),
            length => Err(FileProblem::Limit(format!(
                "a manifest of {length} bytes, more than {MAX_MANIFEST_BYTES}"
            ))),
        }
    }

    /// Reads the manifest of the checkpoint in `folder`, and its hash.
    pub(super) fn read(folder: &ConfinedPath, step: u64) -> Result<(Self, String), Fault> {
        let path = folder.join(MANIFEST);
        Self::from_bytes(&read(&path, MAX_MANIFEST_BYTES)?, &path, step)
    }

    /// Decodes the bytes of the manifest `path`, and returns its hash too.
    pub fn from_bytes(bytes: &[u8], path: &Path, step: u64) -> Result<(Self, String), Fault> {
        let bad = |problem| FileError::new(path, problem);
        let changed = |what: &str| bad(FileProblem::Changed(what.to_owned()));
        let json = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let hash = blake3::hash(json).to_hex();
        let end = [b"\n", hash.as_bytes(), b"\n"].concat();
        if bytes.get(json.len()..) != Some(&end) {
            let problem =
                format!("damaged or cut short: not the bytes that were written ({} bytes)", bytes.len());
            return Err(changed(&problem).into());
        }
        let parse = |error: serde_json::Error| bad(FileProblem::Format(error.to_string()));
        let Format { format } = serde_json::from_slice(json).map_err(parse)?;
        if format != FORMAT {
            return Err(Fault::OtherFormat { path: path.to_owned(), format });
        }
        let manifest: Self = serde_json::from_slice(json).map_err(parse)?;
        if manifest.step != step {
            return Err(changed(&format!(
                "the manifest of step {} is in the folder of step {step}",
                manifest.step
            ))
            .into());
        }
        manifest.check().map_err(bad)?;
        if manifest.to_bytes().map_err(bad)?.0 != bytes {
            return Err(changed("not in the form that calmix writes").into());
        }
        Ok((manifest, hash.to_string()))
    }

    /// Checks that the names of its files are plain and ascend.
    pub(super) fn check(&self) -> Result<(), FileProblem> {
        if let Some(file) = self.files.iter().find(|file| !is_plain(&file.name)) {
            return Err(FileProblem::Content(format!("{:?} is not a valid name for a part", file.name)));
        }
        match self.files.array_windows().find(|[a, b]| a.name >= b.name) {
            Some([a, b]) => {
                let problem =
                    format!("the names of parts are not in order: {:?} before {:?}", a.name, b.name);
                Err(FileProblem::Content(problem))
            }
            None => Ok(()),
        }
    }

    /// Returns the entry of the file `name`.
    pub fn file(&self, name: &str) -> Option<&Written> {
        self.files.iter().find(|file| file.name == name)
    }
}
