//! The location of a dataset's parts: a folder or object storage.

use std::path::Path;
use std::sync::Arc;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_formats::read_at::ReadAt;
use calmix_formats::vectors::VectorPlace;

use crate::error::DataError;

/// The location of the files that a dataset was prepared from.
#[derive(Debug)]
pub(super) enum PartSource {
    Local(VectorPlace),
    Remote(Arc<RemoteFolder>),
}

impl PartSource {
    /// Finds the location that the user gave.
    pub(super) fn find(root: &Path) -> Result<Self, DataError> {
        match CloudUrl::parse(root) {
            Some(url) => Ok(Self::Remote(RemoteFolder::open(&url)?)),
            None => Ok(Self::Local(VectorPlace::find(root)?)),
        }
    }

    /// Opens the file of a part. If the dataset has only one part, its file may have been renamed: the user then names the
    /// file itself.
    pub(super) fn open(&self, name: &str, is_only_part: bool) -> Result<ReadAt, DataError> {
        let opened = match self {
            Self::Local(VectorPlace { folder, file: Some(renamed) }) if is_only_part => {
                ReadAt::open(folder, renamed)
            }
            Self::Local(place) => ReadAt::open(&place.folder, name),
            Self::Remote(remote) => {
                let file = remote.fetch(name)?;
                ReadAt::from_cache(remote.path(name), file, RemoteFolder::mark_used)
            }
        };
        Ok(opened?)
    }

    /// Opens the original file of a shrunk image.
    pub(super) fn open_original(&self, name: &str) -> Result<ReadAt, DataError> {
        match self {
            Self::Local(place) => Ok(ReadAt::open(&place.folder, name)?),
            Self::Remote(remote) => {
                let problem = "images of shards are never shrunk";
                Err(DataError::content(remote.path(name), problem).hint("prepare the dataset again"))
            }
        }
    }

    pub(super) fn remote(&self) -> Option<&Arc<RemoteFolder>> {
        match self {
            Self::Local(_) => None,
            Self::Remote(remote) => Some(remote),
        }
    }
}
