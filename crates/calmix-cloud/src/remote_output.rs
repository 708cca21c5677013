//! Output files that are finished locally and then stored as objects.
//!
//! The files of an output are written in a folder of the cache and uploaded one by one, each when it is complete. A process
//! that continues an output on another machine first downloads the stored files.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_io::error::{FileError, FileProblem};
use calmix_io::{atomic_file, safe_open};

use crate::cloud_url::CloudUrl;
use crate::shard_cache::ShardCache;
use crate::store::Store;

/// The maximum size of a file to restore, in bytes.
const MAX_RESTORED_BYTES: u64 = 1 << 30;

/// An output in object storage, and the local folder in which its files are written.
#[derive(Debug)]
pub struct RemoteOutput {
    url: CloudUrl,
    store: Store,
    /// The local folder.
    staging: PathBuf,
    /// The key of the folder of `url`, which contains the files of the output.
    key: String,
    name: String,
}

impl RemoteOutput {
    /// Opens the output `url`. The names of its objects start with `url`: a folder, and files beside it.
    ///
    /// # Errors
    /// If calmix was built without the feature `cloud`, or the URL cannot be written to.
    pub fn open(url: &CloudUrl) -> Result<Self, FileError> {
        url.check()?;
        let mistake = |problem: &str, hint: &str| FileError::mistake(url.to_path(), problem).hint(hint);
        let store = Store::open(url)?;
        if url.is_web() {
            let hint = "name s3://, gs:// or az://, or a local folder";
            return Err(mistake("a web server cannot be written to", hint));
        }
        let (folder, name) = url.key().rsplit_once('/').unwrap_or(("", url.key()));
        if name.is_empty() || name.contains(['{', '}']) {
            return Err(mistake(
                "the URL names no output",
                "add a name, such as s3://BUCKET/predictions.parquet",
            ));
        }
        let key = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let cache = ShardCache::from_environment()?;
        let hash: String = blake3::hash(url.as_str().as_bytes()).to_hex().chars().take(40).collect();
        let outputs = cache.folder().join("outputs");
        safe_open::create_folder_if_missing(&*outputs)?;
        let staging = outputs.join(hash);
        safe_open::create_folder_if_missing(&*staging)?;
        safe_open::check_owned_folder(&staging)?;
        Ok(Self { url: url.clone(), store, staging, key, name: name.to_owned() })
    }

    pub fn url(&self) -> &CloudUrl {
        &self.url
    }

    /// Returns the local path of the output.
    pub fn local(&self) -> PathBuf {
        self.staging.join(&self.name)
    }

    /// Returns whether any object of the output is stored.
    pub fn is_stored(&self) -> Result<bool, FileError> {
        Ok(!self.stored()?.is_empty())
    }

    /// Downloads stored files that are missing locally, so that this machine can continue the output.
    ///
    /// # Errors
    /// If it cannot be read, or not be written here.
    pub fn restore(&self) -> Result<(), FileError> {
        for name in self.stored()? {
            let path = self.staging.join(&name);
            if safe_open::exists(&path) {
                continue;
            }
            if let Some(folder) = path.parent().filter(|folder| *folder != self.staging) {
                safe_open::create_folder_if_missing(folder)?;
            }
            if let Some(bytes) = self.store.read(&format!("{}{name}", self.key), MAX_RESTORED_BYTES)? {
                atomic_file::write(&*path, &bytes)?;
            }
        }
        Ok(())
    }

    /// Uploads a new object for the local file `path`.
    ///
    /// # Errors
    /// If it exists already, or the store refuses it.
    pub fn create(&self, path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
        let name = self.name_of(path)?;
        if self.store.put(&format!("{}{name}", self.key), bytes, false)? {
            return Ok(());
        }
        let problem = FileProblem::Held("another process".into());
        let path = PathBuf::from(format!("{}/{}{name}", self.url.base(), self.key));
        Err(FileError::new(path, problem)
            .hint("give each process an output of its own, for example by `--shard`"))
    }

    /// Uploads an object for the local file `path`, replacing an earlier one.
    pub fn replace(&self, path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
        let name = self.name_of(path)?;
        self.store.put(&format!("{}{name}", self.key), bytes, true).map(drop)
    }

    /// Removes the local files, including those of a killed process.
    pub fn clear_local(&self) -> Result<(), FileError> {
        self.remove_local();
        safe_open::create_folder_if_missing(&*self.staging)
    }

    /// Removes the local files and their folder.
    pub fn remove_local(&self) {
        // Leftover files only take up space.
        let _ = fs::remove_dir_all(&self.staging);
    }

    /// Lists the stored files of the output by name, relative to the folder of the URL.
    fn stored(&self) -> Result<Vec<String>, FileError> {
        let all = self.store.names(self.key.trim_end_matches('/'))?;
        let is_part = |rest: &str| {
            let part = rest.strip_prefix("/part-").and_then(|part| part.strip_suffix(".parquet"));
            part.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let is_ours = |name: &String| {
            let rest = name.strip_prefix(self.name.as_str());
            rest.is_some_and(|rest| [".predict.json", ".parts.jsonl"].contains(&rest) || is_part(rest))
        };
        Ok(all.into_iter().filter(is_ours).collect())
    }

    fn name_of(&self, path: &Path) -> Result<String, FileError> {
        let below = path.strip_prefix(&self.staging).ok().and_then(Path::to_str);
        below
            .map(str::to_owned)
            .ok_or_else(|| FileError::content(path, format!("not a file of {}", self.url)))
    }
}
