//! A local cache of shards with a size limit and least-recently-used eviction.
//!
//! A file gets its name by a rename when it is complete, so an existing file can be used. The name is a hash of the URL, the
//! size and the version (ETag) of the object: another version is another file. All processes of a machine share the folder;
//! an object that several of them need at once is fetched by one. A file that is evicted while a process reads it stays
//! readable for that process until it closes the file.

use std::env;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use calmix_io::error::{ErrorKind, FileError};
use calmix_io::safe_open;

/// The environment variable for the folder of the cache.
pub const CACHE_FOLDER: &str = "CALMIX_SHARD_CACHE";
/// The environment variable for the size of the cache, in GB.
pub const CACHE_LIMIT: &str = "CALMIX_SHARD_CACHE_GB";
const DEFAULT_GB: f64 = 32.0;

/// The extensions of complete and partial files.
const COMPLETE: &str = "shard";
const PARTIAL: &str = "partial";

/// The interval for checking whether other processes have finished a shard, which can then be evicted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a process waits for space.
const ROOM_TIMEOUT: Duration = Duration::from_mins(10);

/// A cache folder.
#[derive(Debug, Clone)]
pub(crate) struct ShardCache {
    folder: PathBuf,
    /// The maximum size of all files, in bytes.
    limit: u64,
}

/// A file in the folder.
struct Entry {
    path: PathBuf,
    size: u64,
    used: SystemTime,
    is_complete: bool,
}

impl ShardCache {
    /// Opens this user's cache, in the folder `CALMIX_SHARD_CACHE` and with the limit `CALMIX_SHARD_CACHE_GB`.
    pub(crate) fn from_environment() -> Result<Self, FileError> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let folder = set(CACHE_FOLDER).map(PathBuf::from).or_else(|| {
            let caches = set("XDG_CACHE_HOME").map(PathBuf::from);
            let caches = caches.or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
            Some(caches?.join("calmix").join("shards"))
        });
        let folder = folder.ok_or_else(|| {
            let problem = "no folder for the shards of object storage: neither it nor HOME is set";
            FileError::mistake(CACHE_FOLDER, problem).hint("set it to a folder on a local disk")
        })?;
        let gigabytes = match set(CACHE_LIMIT) {
            None => DEFAULT_GB,
            Some(text) => {
                let number = text.to_str().and_then(|text| text.parse::<f64>().ok());
                number.filter(|gigabytes| *gigabytes > 0.0 && gigabytes.is_finite()).ok_or_else(|| {
                    let problem = format!("{} is not a number of gigabytes", text.to_string_lossy());
                    FileError::mistake(CACHE_LIMIT, problem).hint("set it to a number above 0, such as 100")
                })?
            }
        };
        Self::new(folder, (gigabytes * 1e9) as u64)
    }

    /// Opens the cache in `folder`, which is created if necessary.
    pub(crate) fn new(folder: PathBuf, limit: u64) -> Result<Self, FileError> {
        // `create_folder_if_missing` creates one level; the levels above it belong to the user.
        if let Some(parent) = folder.parent() {
            safe_open::create_folders(parent).map_err(|error| FileError::new(parent, error))?;
        }
        safe_open::create_folder_if_missing(&*folder)?;
        safe_open::check_owned_folder(&folder)?;
        Ok(Self { folder, limit })
    }

    /// Returns the maximum size of all files, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the file `name` and marks it as used; `None` if it is missing or has another size.
    pub(crate) fn open(&self, name: &str, size: u64) -> Option<File> {
        let (file, found) = safe_open::open_owned(&*self.path(name, COMPLETE)).ok()?;
        if found != size {
            return None;
        }
        mark_used(&file);
        Some(file)
    }

    /// Opens the file `name` from the cache, or calls `fetch` to write its `size` bytes.
    pub(crate) fn open_or_fetch(
        &self,
        name: &str,
        size: u64,
        fetch: impl FnOnce(&mut File) -> Result<(), FileError>,
    ) -> Result<File, FileError> {
        if let Some(file) = self.open(name, size) {
            return Ok(file);
        }
        if size > self.limit {
            let problem = format!("the shard has {size} bytes, but the cache may hold {}", self.limit);
            let hint = format!("set {CACHE_LIMIT} to more gigabytes, or write smaller shards");
            let error = FileError::limit(&self.folder, problem).hint(hint);
            return Err(error.unless_transient(ErrorKind::Mistake));
        }
        // Held until the file is complete: a process that waits for the lock then finds the file.
        let _held = self.lock(name)?;
        if let Some(file) = self.open(name, size) {
            return Ok(file);
        }
        let partial = self.path(name, PARTIAL);
        let failed = |error: io::Error| FileError::new(&partial, error);
        let mut file = self.reserve(&partial, size)?;
        let fetched = fetch(&mut file).and_then(|()| {
            // A power failure must not leave an incomplete file under the final name.
            file.sync_data().and_then(|()| fs::rename(&partial, self.path(name, COMPLETE))).map_err(failed)
        });
        if let Err(error) = fetched {
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
        self.open(name, size).ok_or_else(|| {
            FileError::changed(self.path(name, COMPLETE), "the shard left the cache at once")
                .hint(format!("set {CACHE_LIMIT} to more gigabytes"))
        })
    }

    /// Makes room for `size` bytes, and creates a file of that size.
    fn reserve(&self, partial: &Path, size: u64) -> Result<File, FileError> {
        let start = Instant::now();
        while start.elapsed() < ROOM_TIMEOUT {
            let held = self.lock("folder")?;
            if self.make_room(size)? {
                let failed = |error: io::Error| FileError::new(partial, error);
                // A file left by a killed process; a link would lead elsewhere.
                let _ = fs::remove_file(partial);
                let options = OpenOptions::new().read(true).write(true).create_new(true).open(partial);
                let file = options.map_err(failed)?;
                // At its full length, so that other processes count it.
                file.set_len(size).map_err(failed)?;
                return Ok(file);
            }
            drop(held);
            thread::sleep(POLL_INTERVAL);
        }
        let problem = format!("no room for {size} bytes: other processes are filling the cache");
        let hint =
            format!("set {CACHE_LIMIT} to more gigabytes, or give each run a folder in {CACHE_FOLDER}");
        Err(FileError::limit(&self.folder, problem).hint(hint))
    }

    /// Evicts the least recently used files until `size` more bytes fit, and returns whether they do. Files that other
    /// processes are writing stay.
    fn make_room(&self, size: u64) -> Result<bool, FileError> {
        let mut entries = self.entries()?;
        let mut total: u64 = entries.iter().map(|entry| entry.size).sum();
        entries.sort_by_key(|entry| entry.used);
        for entry in entries {
            if total.saturating_add(size) <= self.limit {
                break;
            }
            if (entry.is_complete || self.is_abandoned(&entry.path)) && fs::remove_file(&entry.path).is_ok() {
                total -= entry.size;
            }
        }
        Ok(total.saturating_add(size) <= self.limit)
    }

    /// Returns whether the process that wrote this partial file has ended.
    fn is_abandoned(&self, partial: &Path) -> bool {
        let Some(name) = partial.file_stem().and_then(|name| name.to_str()) else { return false };
        let lock = File::options().read(true).write(true).open(self.lock_path(name));
        !matches!(lock.map(|lock| lock.try_lock()), Ok(Err(TryLockError::WouldBlock)))
    }

    fn entries(&self) -> Result<Vec<Entry>, FileError> {
        let failed = |error: io::Error| FileError::new(&self.folder, error);
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.folder).map_err(failed)? {
            let path = found.map_err(failed)?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_complete = extension == Some(COMPLETE);
            // Another process may have removed it meanwhile.
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_file() && (is_complete || extension == Some(PARTIAL)) {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Entry { path, size: metadata.len(), used, is_complete });
            }
        }
        Ok(entries)
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    /// Returns one of a few lock files, which are never removed: names that share one wait for each other.
    fn lock_path(&self, name: &str) -> PathBuf {
        let start: String = name.chars().take(2).collect();
        self.folder.join(format!("{start}.lock"))
    }

    fn lock(&self, name: &str) -> Result<File, FileError> {
        let path = self.lock_path(name);
        let failed = |error: io::Error| FileError::new(&path, error);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }
}

/// Marks an open shard as recently used.
pub(crate) fn mark_used(file: &File) {
    // If this fails, the shard may be evicted earlier than it should.
    let _ = file.set_modified(SystemTime::now());
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn filled(cache: &ShardCache, name: &str, size: usize) -> Result<File, FileError> {
        let file = cache.open_or_fetch(name, size as u64, |file| {
            file.write_all(&vec![name.as_bytes()[0]; size]).map_err(|error| FileError::new("x", error))
        });
        // File times are compared, so two files must not fall into one clock tick.
        thread::sleep(Duration::from_millis(20));
        file
    }

    #[test]
    fn least_recently_used_shard_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ShardCache::new(folder.path().join("c"), 100).unwrap();
        for name in ["aa", "bb", "cc"] {
            filled(&cache, name, 30).unwrap();
        }
        assert!(cache.open("aa", 30).is_some());
        thread::sleep(Duration::from_millis(20));
        let mut open = filled(&cache, "dd", 30).unwrap();
        let kept = ["aa", "bb", "cc", "dd"].map(|name| cache.open(name, 30).is_some());
        assert_eq!(kept, [true, false, true, true]);
        // An open file stays readable after its eviction.
        filled(&cache, "ee", 100).unwrap();
        let mut bytes = Vec::new();
        open.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [b'd'; 30]);
        assert!(cache.open("dd", 30).is_none());
    }

    #[test]
    fn shard_beyond_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ShardCache::new(folder.path().join("c"), 100).unwrap();
        let error = filled(&cache, "aa", 101).unwrap_err();
        assert!(error.to_string().contains(CACHE_LIMIT) && error.kind() == ErrorKind::Mistake, "{error}");
    }

    #[test]
    fn failed_fetch_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ShardCache::new(folder.path().join("c"), 100).unwrap();
        let broken = cache.open_or_fetch("aa", 10, |_| Err(FileError::new("u", io::Error::other("reset"))));
        assert!(broken.is_err() && cache.entries().unwrap().is_empty());
        // Files left by a killed process are neither used nor counted forever.
        fs::write(cache.path("aa", PARTIAL), [0; 90]).unwrap();
        assert!(cache.open("aa", 90).is_none());
        filled(&cache, "bb", 50).unwrap();
        assert!(!cache.path("aa", PARTIAL).exists());
    }

    #[test]
    fn threads_fetch_a_shard_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ShardCache::new(folder.path().join("c"), 100).unwrap();
        let fetched = std::sync::atomic::AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    cache.open_or_fetch("aa", 3, |file| {
                        fetched.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(30));
                        file.write_all(b"abc").map_err(|error| FileError::new("x", error))
                    })
                });
            }
        });
        assert_eq!(fetched.into_inner(), 1);
    }
}
