//! A tar whose members are listed: a local file, or an object that is fetched as a whole.

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::vec::IntoIter;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_formats::error::FormatProblem;

use crate::error::DataError;

/// Where a tar is.
#[derive(Debug, Clone)]
pub(super) enum ShardFile {
    Local(PathBuf),
    Remote(Arc<RemoteFolder>, Arc<str>),
}

impl ShardFile {
    /// Its path or URL.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Local(path) => path.clone(),
            Self::Remote(remote, name) => remote.path(name),
        }
    }

    /// Opens it; an object is fetched unless it is in the cache.
    pub(super) fn open(&self) -> Result<File, FormatProblem> {
        match self {
            Self::Local(path) => Ok(File::open(path)?),
            Self::Remote(remote, name) => remote.fetch(name).map_err(|error| DataError::from(error).into()),
        }
    }
}

/// The rest of the tars that a URL names.
#[derive(Debug)]
pub(super) struct PendingShards {
    remote: Arc<RemoteFolder>,
    names: IntoIter<Arc<str>>,
}

impl PendingShards {
    /// The tars of `url` that are in `shard`.
    pub(super) fn open(url: &CloudUrl, shard: Option<FileShard>) -> Result<Self, DataError> {
        let remote = RemoteFolder::open(url)?;
        let is_wanted = |name: &str| shard.is_none_or(|shard| shard.has(name.as_ref()));
        let is_tar = |name: &str| name.to_ascii_lowercase().ends_with(".tar");
        let names = remote.objects().iter().map(|object| object.name.as_str());
        let names: Vec<Arc<str>> =
            names.filter(|name| is_tar(name) && is_wanted(name)).map(Arc::from).collect();
        Ok(Self { remote, names: names.into_iter() })
    }

    /// The next tar. The one after it is fetched meanwhile.
    pub(super) fn next(&mut self) -> Option<ShardFile> {
        let name = self.names.next()?;
        if let Some(after) = self.names.as_slice().first() {
            self.remote.prefetch(vec![after.to_string()]);
        }
        Some(ShardFile::Remote(Arc::clone(&self.remote), name))
    }
}

/// One of `count` shards of the files of a list. The hash of its relative path puts a file into a shard, so that the shards
/// depend neither on the order of the files nor on the place of the folder, and a process passes the files of the
/// others without opening them. A `.tar` is one file: all its images are in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileShard {
    /// From 0 to `count` − 1.
    pub index: u64,
    /// The number of shards.
    pub count: u64,
}

impl FileShard {
    /// Whether the file of this path is in the shard.
    pub fn has(self, relative: &OsStr) -> bool {
        let hash = blake3::hash(relative.as_encoded_bytes());
        // The first bytes of a hash are as good as all of them.
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h]).checked_rem(self.count) == Some(self.index)
    }
}
