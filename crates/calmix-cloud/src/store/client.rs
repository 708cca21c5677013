//! Requests to an object store or a web server. The async runtime is confined to this module.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use calmix_io::error::{ErrorKind, FileError};
use calmix_io::transient::BackOff;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use super::RemoteObject;
use super::problem::{is_retryable, to_file_error};
use crate::cloud_url::{CloudUrl, Scheme};

/// How long a server may pause between two reads.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 16;
/// Attempts before a fetch fails; waits without progress have a separate limit.
const MAX_ATTEMPTS: usize = 100;

/// The maximum number of objects in a listing.
const MAX_OBJECTS: usize = 1 << 22;

/// A client for a bucket, a container or a host.
#[derive(Debug)]
pub(crate) struct Store {
    url: CloudUrl,
    client: Arc<dyn ObjectStore>,
    runtime: &'static Runtime,
}

impl Store {
    pub(crate) fn open(url: &CloudUrl) -> Result<Self, FileError> {
        let runtime = runtime(url)?;
        let client = client(url).map_err(|error| to_file_error(&url.to_path(), &error))?;
        Ok(Self { url: url.clone(), client, runtime })
    }

    /// Lists the shards below a prefix.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<RemoteObject>, FileError> {
        let below = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let mut objects = Vec::new();
        for found in self.list_below(prefix, is_listed)? {
            let Some(name) = found.location.as_ref().strip_prefix(&below) else { continue };
            objects.push(remote_object(name, &found));
        }
        Ok(objects)
    }

    /// Lists the names of all objects below a prefix.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, FileError> {
        let below = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let all = self.list_below(prefix, |_| true)?;
        Ok(all
            .iter()
            .filter_map(|found| found.location.as_ref().strip_prefix(&below).map(str::to_owned))
            .collect())
    }

    fn list_below(&self, prefix: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<ObjectMeta>, FileError> {
        let key = self.key(prefix)?;
        let prefix = (!prefix.is_empty()).then_some(&key);
        let path = self.url.to_path();
        let listed = self.runtime.block_on(async {
            let mut found = Vec::new();
            let mut all = self.client.list(prefix);
            while let Some(object) = all.try_next().await? {
                if wanted(object.location.as_ref()) {
                    found.push(object);
                }
                if found.len() > MAX_OBJECTS {
                    break;
                }
            }
            Ok::<_, object_store::Error>(found)
        });
        let found = listed.map_err(|error| to_file_error(&path, &error))?;
        if found.len() > MAX_OBJECTS {
            let problem = format!("more than {MAX_OBJECTS} objects");
            let error = FileError::limit(path, problem).hint("name a longer prefix");
            return Err(error.unless_transient(ErrorKind::Mistake));
        }
        Ok(found)
    }

    /// Returns size and version of the objects `keys`, which lie below `folder`, in the same order.
    pub(crate) fn describe(&self, folder: &str, keys: &[String]) -> Result<Vec<RemoteObject>, FileError> {
        let mut locations = Vec::with_capacity(keys.len());
        for key in keys {
            locations.push((key, self.key(key)?));
        }
        let path = |key: &str| self.url.with_key(key).to_path();
        self.runtime.block_on(async {
            let heads = stream::iter(locations).map(|(key, location)| async move {
                let found =
                    self.client.head(&location).await.map_err(|error| to_file_error(&path(key), &error))?;
                let name = key.strip_prefix(folder).unwrap_or(key).trim_start_matches('/');
                Ok(remote_object(name, &found))
            });
            heads.buffered(MAX_CONCURRENT_REQUESTS).try_collect().await
        })
    }

    /// Downloads an object into `file`. A broken connection is resumed where it broke; `path` names the object in messages.
    pub(crate) fn fetch(
        &self,
        key: &str,
        object: &RemoteObject,
        file: &mut File,
        path: &Path,
    ) -> Result<(), FileError> {
        let location = self.key(key)?;
        let mut done = 0;
        let mut back_off = BackOff::default();
        for _ in 0..MAX_ATTEMPTS {
            let before = done;
            let error = match self.runtime.block_on(self.stream(&location, object, file, &mut done)) {
                Ok(()) if done == object.size => return Ok(()),
                Ok(()) => incomplete(path, done, object.size),
                Err(FetchProblem::Local(error)) => return Err(FileError::new(path, error)),
                Err(FetchProblem::Changed) => return Err(changed(path)),
                Err(FetchProblem::Remote(error)) if is_retryable(&error) => to_file_error(path, &error),
                Err(FetchProblem::Remote(error)) => return Err(to_file_error(path, &error)),
            };
            if done > before {
                back_off = BackOff::default();
            }
            // Not the loader's wait, which would restart the shard.
            let Some(wait) = back_off.next() else { return Err(error) };
            thread::sleep(wait);
        }
        Err(incomplete(path, done, object.size))
    }

    /// Downloads the bytes from `done` on, and advances it by what was written.
    async fn stream(
        &self,
        location: &Key,
        object: &RemoteObject,
        file: &mut File,
        done: &mut u64,
    ) -> Result<(), FetchProblem> {
        let options = GetOptions {
            range: (*done > 0).then_some(GetRange::Offset(*done)),
            if_match: object.e_tag.clone(),
            ..GetOptions::default()
        };
        let found = match self.client.get_opts(location, options).await {
            Err(object_store::Error::NotSupported { .. }) if *done > 0 => {
                // The server ignores range requests.
                *done = 0;
                return Ok(());
            }
            Err(object_store::Error::Precondition { .. }) => return Err(FetchProblem::Changed),
            found => found?,
        };
        if remote_object("", &found.meta).version != object.version || found.meta.size != object.size {
            return Err(FetchProblem::Changed);
        }
        file.seek(SeekFrom::Start(*done))?;
        let mut bytes = found.into_stream();
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk?;
            let length = chunk.len() as u64;
            if *done + length > object.size {
                return Err(FetchProblem::Changed);
            }
            file.write_all(&chunk)?;
            *done += length;
        }
        Ok(())
    }

    /// Uploads an object; returns `false` if it exists and must not be overwritten.
    pub(crate) fn put(&self, key: &str, bytes: Vec<u8>, overwrite: bool) -> Result<bool, FileError> {
        let mode = if overwrite { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, ..PutOptions::default() };
        let location = self.key(key)?;
        let put = self.client.put_opts(&location, PutPayload::from(bytes), options);
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. })
                if !overwrite =>
            {
                Ok(false)
            }
            Err(error) => Err(to_file_error(&self.url.with_key(key).to_path(), &error)),
        }
    }

    /// Reads an object of at most `max_bytes`; `None` if it does not exist.
    pub(crate) fn read(&self, key: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.url.with_key(key).to_path();
        let location = self.key(key)?;
        let read = self.runtime.block_on(async {
            let found = self.client.get_opts(&location, GetOptions::default()).await?;
            let size = found.meta.size;
            if size > max_bytes { Ok(Err(size)) } else { found.bytes().await.map(|bytes| Ok(bytes.to_vec())) }
        });
        match read {
            Ok(Ok(bytes)) => Ok(Some(bytes)),
            Ok(Err(size)) => {
                Err(FileError::limit(path, format!("{size} bytes, expected at most {max_bytes}")))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(to_file_error(&path, &error)),
        }
    }

    fn key(&self, key: &str) -> Result<Key, FileError> {
        // Web addresses are percent-encoded, such as %20; keys of object stores are not.
        let parsed = if self.url.is_web() { Key::from_url_path(key) } else { Key::parse(key) };
        parsed.map_err(|error| to_file_error(&self.url.with_key(key).to_path(), &error.into()))
    }
}

/// Why an attempt to download an object ended.
enum FetchProblem {
    Remote(object_store::Error),
    Local(std::io::Error),
    Changed,
}

impl From<object_store::Error> for FetchProblem {
    fn from(error: object_store::Error) -> Self {
        Self::Remote(error)
    }
}

impl From<std::io::Error> for FetchProblem {
    fn from(error: std::io::Error) -> Self {
        Self::Local(error)
    }
}

fn remote_object(name: &str, found: &ObjectMeta) -> RemoteObject {
    // A weak ETag does not guarantee equal bytes, and requests cannot be conditional on it.
    let e_tag = found.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
    let changed = found.last_modified.timestamp();
    // Without the header, the time is the epoch.
    let by_time = if changed > 0 { format!("changed {changed}") } else { String::new() };
    let version = e_tag.clone().unwrap_or(by_time);
    RemoteObject { name: name.to_owned(), size: found.size, version, e_tag }
}

/// Returns whether a key is a shard, or a compressed one, which readers refuse with their own message.
fn is_listed(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"].iter().any(|end| lower.ends_with(end))
}

fn incomplete(path: &Path, done: u64, size: u64) -> FileError {
    let error = std::io::Error::new(
        std::io::ErrorKind::ConnectionReset,
        format!("the server sent {done} of {size} bytes, however often it was asked"),
    );
    FileError::new(path, error).hint("check the server and the network, then start the same command again")
}

fn changed(path: &Path) -> FileError {
    let problem = "the object has changed since it was listed";
    FileError::changed(path, problem).hint("prepare the dataset again").unless_transient(ErrorKind::Mistake)
}

/// Returns the runtime of all stores, which the first one starts.
fn runtime(url: &CloudUrl) -> Result<&'static Runtime, FileError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    // Fails if the process has installed one already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = Builder::new_multi_thread().worker_threads(2).thread_name("cloud").enable_all().build();
    let made = made.map_err(|error| FileError::new(url.to_path(), error))?;
    Ok(RUNTIME.get_or_init(|| made))
}

fn client(url: &CloudUrl) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry =
        RetryConfig { max_retries: 8, retry_timeout: BackOff::MAX_TOTAL_WAIT, ..RetryConfig::default() };
    // A whole shard may take minutes, so only pauses are limited.
    let options = ClientOptions::new().with_timeout_disabled().with_read_timeout(READ_TIMEOUT);
    let base = url.base();
    Ok(match url.scheme() {
        Scheme::S3 => {
            let is_plain = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
                .iter()
                .find_map(|name| std::env::var(name).ok())
                .is_some_and(|endpoint| endpoint.starts_with("http://"));
            let builder = AmazonS3Builder::from_env().with_client_options(options.with_allow_http(is_plain));
            Arc::new(builder.with_url(base).with_retry(retry).build()?)
        }
        Scheme::Gs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_client_options(options);
            Arc::new(builder.with_url(base).with_retry(retry).build()?)
        }
        Scheme::Az => {
            let builder = MicrosoftAzureBuilder::from_env().with_client_options(options);
            Arc::new(builder.with_url(base).with_retry(retry).build()?)
        }
        Scheme::Https | Scheme::Http => {
            let options = options.with_allow_http(url.scheme() == Scheme::Http);
            Arc::new(
                HttpBuilder::new().with_url(base).with_client_options(options).with_retry(retry).build()?,
            )
        }
    })
}
