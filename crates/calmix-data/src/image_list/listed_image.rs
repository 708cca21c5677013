//! An image of a list, and the location of its bytes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use calmix_formats::decode::{DecodeLimits, EncodedFile, decode_at_least};
use calmix_formats::error::FormatProblem;
use calmix_formats::image::Image;

use super::shard_file::ShardFile;
use crate::error::DataError;
use crate::shrink::decode_shrunk;

/// One image of a list.
#[derive(Debug)]
pub struct ListedImage {
    /// Its path as given, or relative to the given folder; for a member of a tar, the path of the tar followed by the
    /// member's name.
    pub path: OsString,
    pub(super) place: ImagePlace,
}

#[derive(Debug)]
pub(super) enum ImagePlace {
    File(PathBuf),
    Member {
        tar: ShardFile,
        offset: u64,
        length: u64,
    },
    /// Why the image cannot be read.
    Unreadable(String),
}

impl ListedImage {
    pub(super) fn unreadable(path: &OsStr, problem: String) -> Self {
        Self { path: path.to_owned(), place: ImagePlace::Unreadable(problem) }
    }

    /// Returns whether it is a member of a tar.
    pub fn is_in_tar(&self) -> bool {
        matches!(self.place, ImagePlace::Member { .. })
    }

    /// Returns whether it is a member of a tar in object storage.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, ImagePlace::Member { tar: ShardFile::Remote(..), .. })
    }

    /// Decodes the image, at reduced size if its shorter side still has at least `side` pixels ([`decode_at_least`]), and
    /// [shrinks](crate::shrink) it to a shorter side of `shrink` pixels if it is larger (0 to keep its size).
    ///
    /// # Errors
    /// If it cannot be read, or is not an image.
    pub fn image(&self, limits: &DecodeLimits, side: u32, shrink: u32) -> Result<Image, DataError> {
        let bytes = match &self.place {
            ImagePlace::File(path) => EncodedFile::read(path, limits),
            ImagePlace::Member { tar, offset, length } => read_member(tar, *offset, *length, limits),
            ImagePlace::Unreadable(problem) => Err(FormatProblem::Format(problem.clone())),
        };
        let decoded = |bytes: &[u8]| match shrink {
            0 => Ok(decode_at_least(bytes, limits, side)?),
            shrink => decode_shrunk(bytes, limits, shrink),
        };
        let bytes = bytes.map_err(|problem| DataError::new(&self.path, problem))?;
        decoded(&bytes).map_err(|error| error.in_file(&self.path))
    }
}

impl ImagePlace {
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Member { tar: ShardFile::Local(path), .. } => Some(path),
            // A store that does not respond is never a bad sector.
            Self::Member { tar: ShardFile::Remote(..), .. } | Self::Unreadable(_) => None,
        }
    }

    /// Returns whether the first byte of its file can be read.
    pub(super) fn can_be_read(&self) -> bool {
        let (path, offset) = match self {
            Self::File(path) => (path, 0),
            Self::Member { tar: ShardFile::Local(tar), offset, .. } => (tar, *offset),
            Self::Member { tar: ShardFile::Remote(..), .. } | Self::Unreadable(_) => return false,
        };
        // Opening a pipe could block forever.
        let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
        let first = || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            file.read(&mut [0])
        };
        is_file && first().is_ok_and(|length| length == 1)
    }
}

/// Reads the bytes of a tar member.
fn read_member(
    tar: &ShardFile,
    offset: u64,
    length: u64,
    limits: &DecodeLimits,
) -> Result<EncodedFile, FormatProblem> {
    let mut file = tar.open()?;
    file.seek(SeekFrom::Start(offset))?;
    EncodedFile::read_member(file, length, limits)
}
