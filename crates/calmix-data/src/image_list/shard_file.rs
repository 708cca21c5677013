//! A tar whose members are listed: a local file, or a remote object that is fetched first.

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::vec::IntoIter;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_formats::error::FormatProblem;

use crate::error::DataError;

/// The location of a tar.
#[derive(Debug, Clone)]
pub(super) enum ShardFile {
    Local(PathBuf),
    Remote(Arc<RemoteFolder>, Arc<str>),
}

impl ShardFile {
    /// Returns its path or URL.
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

/// The tars at a URL that remain to be listed.
#[derive(Debug)]
pub(super) struct PendingShards {
    remote: Arc<RemoteFolder>,
    names: IntoIter<Arc<str>>,
}

impl PendingShards {
    /// Finds the tars at `url` that belong to `shard`.
    pub(super) fn open(url: &CloudUrl, shard: Option<FileShard>) -> Result<Self, DataError> {
        let remote = RemoteFolder::open(url)?;
        let is_wanted = |name: &str| shard.is_none_or(|shard| shard.has(name.as_ref()));
        let is_tar = |name: &str| name.to_ascii_lowercase().ends_with(".tar");
        let names = remote.objects().iter().map(|object| object.name.as_str());
        let names: Vec<Arc<str>> =
            names.filter(|name| is_tar(name) && is_wanted(name)).map(Arc::from).collect();
        Ok(Self { remote, names: names.into_iter() })
    }

    /// Returns the next tar, and starts fetching the one after it.
    pub(super) fn next(&mut self) -> Option<ShardFile> {
        let name = self.names.next()?;
        if let Some(after) = self.names.as_slice().first() {
            self.remote.prefetch(vec![after.to_string()]);
        }
        Some(ShardFile::Remote(Arc::clone(&self.remote), name))
    }
}

/// One of `count` shards of the files of a list. A file is assigned to a shard by the hash of its relative path, so the
/// assignment depends neither on the order of the files nor on the location of the folder, and a process skips the files of
/// other shards without opening them. A `.tar` counts as one file: all its images are in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileShard {
    /// The shard, from 0 to `count` − 1.
    pub index: u64,
    /// The number of shards.
    pub count: u64,
}

impl FileShard {
    /// Returns whether the file with this path is in the shard.
    pub fn has(self, relative: &OsStr) -> bool {
        let hash = blake3::hash(relative.as_encoded_bytes());
        // A prefix of the hash is as uniform as the whole.
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h]).checked_rem(self.count) == Some(self.index)
    }
}
