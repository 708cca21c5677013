//! The shards at a URL, and their local files.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, OnceLock};

use calmix_io::error::FileError;

use crate::braces::expand;
use crate::cloud_url::CloudUrl;
use crate::prefetch::Prefetcher;
use crate::shard_cache::{ShardCache, mark_used};
use crate::store::{RemoteObject, Store};

/// A folder of shards (`.tar`) in object storage or on a web server, as it was when opened.
#[derive(Debug)]
pub struct RemoteFolder {
    url: CloudUrl,
    objects: Vec<RemoteObject>,
    by_name: HashMap<String, usize>,
    store: Store,
    cache: ShardCache,
    prefetcher: OnceLock<Prefetcher>,
}

impl RemoteFolder {
    /// Lists the shards at `url`: all below a prefix, a single one, or an expression with braces. Other objects are skipped.
    ///
    /// # Errors
    /// If calmix was built without the feature `cloud`, the URL cannot be used, or the server refuses or does not answer.
    pub fn open(url: &CloudUrl) -> Result<Arc<Self>, FileError> {
        url.check()?;
        // First, because without the feature there is nothing to cache.
        let store = Store::open(url)?;
        Self::listed(url, store, ShardCache::from_environment()?)
    }

    /// Lists the shards as [`open`](Self::open) does, with a cache of at most `limit` bytes in the folder `cache`.
    pub fn open_with_cache(url: &CloudUrl, cache: PathBuf, limit: u64) -> Result<Arc<Self>, FileError> {
        url.check()?;
        let store = Store::open(url)?;
        Self::listed(url, store, ShardCache::new(cache, limit)?)
    }

    fn listed(url: &CloudUrl, store: Store, cache: ShardCache) -> Result<Arc<Self>, FileError> {
        let mistake = |problem: String, hint: &str| FileError::mistake(url.to_path(), problem).hint(hint);
        let braces = "name the shards with a range in braces, such as https://HOST/train-{000..099}.tar";
        let key = url.key();
        let has_braces = key.contains(['{', '}']);
        let (folder, mut objects) = if has_braces || is_shard(key) {
            let keys = expand(key).map_err(|problem| mistake(problem, braces))?;
            if let Some(other) = keys.iter().find(|key| !is_shard(key)) {
                return Err(mistake(format!("{other} is not a shard"), "name .tar files"));
            }
            let fixed = key.split('{').next().unwrap_or_default();
            let folder = fixed.rsplit_once('/').map_or("", |(folder, _)| folder);
            (folder, store.describe(folder, &keys)?)
        } else if url.is_web() {
            return Err(mistake("a web server does not list its files".to_owned(), braces));
        } else {
            (key, store.list(key)?)
        };
        // In the order of a local folder, so that a dataset has the same table wherever its shards are.
        objects.sort_by(|a, b| folder_order(&a.name, &b.name));
        let by_name: HashMap<String, usize> =
            objects.iter().enumerate().map(|(index, object)| (object.name.clone(), index)).collect();
        if by_name.len() < objects.len() {
            return Err(mistake("two of its shards have the same name".to_owned(), "name each shard once"));
        }
        let url = url.with_key(folder);
        Ok(Arc::new(Self { url, objects, by_name, store, cache, prefetcher: OnceLock::new() }))
    }

    /// Returns the URL of the folder.
    pub fn url(&self) -> &CloudUrl {
        &self.url
    }

    /// Returns the objects named like shards, including compressed ones, in the order of a local folder.
    pub fn objects(&self) -> &[RemoteObject] {
        &self.objects
    }

    /// Returns the object with this name.
    pub fn object(&self, name: &str) -> Option<&RemoteObject> {
        self.by_name.get(name).and_then(|&index| self.objects.get(index))
    }

    /// Returns the URL of an object as a path.
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}/{name}", self.url.as_str()))
    }

    /// Returns the maximum size of the cache, in bytes.
    pub fn cache_limit(&self) -> u64 {
        self.cache.limit()
    }

    /// Opens the local file of an object, fetching it unless it is in the cache.
    ///
    /// # Errors
    /// If it cannot be fetched, has changed since the folder was opened, or the disk is full.
    pub fn fetch(&self, name: &str) -> Result<File, FileError> {
        let Some(object) = self.object(name) else {
            let problem = "there is no such object any more";
            return Err(FileError::mistake(self.path(name), problem).hint("prepare the dataset again"));
        };
        let path = self.path(name);
        let key =
            if self.url.key().is_empty() { name.to_owned() } else { format!("{}/{name}", self.url.key()) };
        self.cache.open_or_fetch(&self.cache_name(object), object.size, |file| {
            self.store.fetch(&key, object, file, &path)
        })
    }

    /// Opens a derived file of the cache; if it is missing, `fill` writes its `size` bytes.
    ///
    /// # Errors
    /// If `fill` fails, or the disk is full.
    pub fn make(
        &self,
        name: &str,
        size: u64,
        fill: impl FnOnce(&mut File) -> Result<(), FileError>,
    ) -> Result<File, FileError> {
        self.cache.open_or_fetch(name, size, fill)
    }

    /// Starts fetching objects in the background, in this order. Failures are reported when the objects are needed.
    pub fn prefetch(self: &Arc<Self>, names: Vec<String>) {
        let prefetcher = || {
            let folder = Arc::downgrade(self);
            Prefetcher::new(move |name| {
                // The threads must not keep the folder alive, because they end with it.
                let Some(folder) = folder.upgrade() else { return false };
                // On failure, the reader that needs it fetches it again and reports the error.
                let _ = folder.fetch(name);
                true
            })
        };
        self.prefetcher.get_or_init(prefetcher).add(names);
    }

    /// Marks an open file of the cache as recently used.
    pub fn mark_used(file: &File) {
        mark_used(file);
    }

    fn cache_name(&self, object: &RemoteObject) -> String {
        let mut hash = blake3::Hasher::new();
        // Without a version, a file from another process may be older than the object.
        let version =
            if object.version.is_empty() { process::id().to_string() } else { object.version.clone() };
        for part in [self.url.as_str(), &object.name, &version] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hash.update(&object.size.to_le_bytes());
        hash.finalize().to_hex().chars().take(40).collect()
    }
}

/// Returns whether a key is named like a shard.
fn is_shard(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with(".tar")
}

/// Compares paths in the order of a local folder: at each level first the files, then the folders, by their bytes.
fn folder_order(a: &str, b: &str) -> Ordering {
    let mut left = a.split('/').peekable();
    let mut right = b.split('/').peekable();
    loop {
        let (Some(a_part), Some(b_part)) = (left.next(), right.next()) else { return a.len().cmp(&b.len()) };
        let is_folder = left.peek().is_some();
        let order = is_folder.cmp(&right.peek().is_some()).then_with(|| a_part.cmp(b_part));
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_a_folder() {
        let mut names = ["b/z.tar", "b/a/x.tar", "c.tar", "a/b.tar", "a.tar", "b-1.tar", "b/b.tar"];
        names.sort_by(|a, b| folder_order(a, b));
        assert_eq!(names, ["a.tar", "b-1.tar", "c.tar", "a/b.tar", "b/b.tar", "b/z.tar", "b/a/x.tar"]);
    }
}
