//! Images to predict, one after the other: files, folders, WebDataset's shards, also in object storage, and lists of them.
//!
//! Nothing is prepared, and memory holds only the names of one folder per level, so a list may have any length. The
//! order is fixed: paths as they are given, the files below a folder in the order of the bytes of their paths, the
//! members of a tar in archive order. What cannot be read keeps its place in that order.

mod bad_file;
mod file_shard;
mod pending;
mod shard_file;

use std::ffi::{OsStr, OsString};
use std::io::BufRead;
use std::path::PathBuf;

use calmix_formats::decode::{DecodeLimits, EncodedFile, decode_at_least};
use calmix_formats::error::FormatProblem;
use calmix_formats::image::Image;

use crate::error::DataError;
use crate::loader::ImageSource;
use crate::shrink::decode_shrunk;
use bad_file::FailingFiles;
pub use file_shard::FileShard;
use pending::PendingImages;
use shard_file::ShardFile;

/// One image of a list.
#[derive(Debug)]
pub struct ListedImage {
    /// Its path as given, or below the given folder; for a member of a tar, the path of the tar followed by its name.
    pub path: OsString,
    place: ImagePlace,
}

#[derive(Debug)]
enum ImagePlace {
    File(PathBuf),
    Member {
        tar: ShardFile,
        offset: u64,
        length: u64,
    },
    /// Why nothing can be read here.
    Nowhere(String),
}

/// The images of paths and lists, in order.
#[derive(Debug, Default)]
pub struct ImageList {
    /// The innermost folder or tar is the last one.
    open: Vec<PendingImages>,
    /// Why the list ended early.
    failure: Option<DataError>,
}

impl ImageList {
    /// The images of these paths: files, folders and WebDataset's shards (`.tar`).
    pub fn of_paths(paths: Vec<PathBuf>) -> Self {
        Self { open: vec![PendingImages::Paths(paths.into_iter(), None)], failure: None }
    }

    /// The images of paths that stand in a list, one per line.
    pub fn of_lines(lines: Box<dyn BufRead + Send>) -> Self {
        Self { open: vec![PendingImages::Lines(lines, None)], failure: None }
    }

    /// Appends `others` to this list.
    #[must_use]
    pub fn then(mut self, mut others: Self) -> Self {
        others.open.append(&mut self.open);
        others
    }

    /// Leaves only the images whose files are in `shard`; the other files are not opened.
    #[must_use]
    pub fn only(mut self, shard: FileShard) -> Self {
        for pending in &mut self.open {
            pending.share(shard);
        }
        self
    }

    /// Why the list ended early: an object store failed. Whoever reads a list to its end has to ask.
    pub fn take_failure(&mut self) -> Option<DataError> {
        self.failure.take()
    }
}

impl Iterator for ImageList {
    type Item = ListedImage;

    fn next(&mut self) -> Option<ListedImage> {
        loop {
            let depth = self.open.len();
            match self.open.last_mut()?.step(depth) {
                pending::ListStep::Image(image) => return Some(image),
                pending::ListStep::Into(inner) => self.open.push(inner),
                pending::ListStep::Passed => {}
                pending::ListStep::Over => drop(self.open.pop()),
                pending::ListStep::Broken(image) => {
                    self.open.pop();
                    return Some(image);
                }
                pending::ListStep::Failed(error) => {
                    self.open.clear();
                    self.failure = Some(error);
                    return None;
                }
            }
        }
    }
}

impl ListedImage {
    fn nowhere(path: &OsStr, problem: String) -> Self {
        Self { path: path.to_owned(), place: ImagePlace::Nowhere(problem) }
    }

    /// Whether it is a member of a tar.
    pub fn is_in_tar(&self) -> bool {
        matches!(self.place, ImagePlace::Member { .. })
    }

    /// Whether it is a member of a tar in object storage.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, ImagePlace::Member { tar: ShardFile::Remote(..), .. })
    }

    /// Decodes the image, to a fraction of its size if its shorter side is then still at least `side`
    /// ([`decode_at_least`]), and shrunk by the [rule](crate::shrink) for large ones (`shrink`, 0 for none).
    ///
    /// # Errors
    /// If it cannot be read, or is not an image.
    pub fn image(&self, limits: &DecodeLimits, side: u32, shrink: u32) -> Result<Image, DataError> {
        let bytes = match &self.place {
            ImagePlace::File(path) => EncodedFile::read(path, limits),
            ImagePlace::Member { tar, offset, length } => pending::read(tar, *offset, *length, limits),
            ImagePlace::Nowhere(problem) => Err(FormatProblem::Format(problem.clone())),
        };
        let decoded = |bytes: &[u8]| match shrink {
            0 => Ok(decode_at_least(bytes, limits, side)?),
            shrink => decode_shrunk(bytes, limits, shrink),
        };
        let bytes = bytes.map_err(|problem| DataError::new(&self.path, problem))?;
        decoded(&bytes).map_err(|error| error.in_file(&self.path))
    }
}

/// A part of a list, as a loader reads it.
#[derive(Debug)]
pub struct ListedImages {
    /// The images; an id is an index into them.
    pub images: Vec<ListedImage>,
    /// Images may be decoded to a fraction of their size that is at least this; [`u32::MAX`] for whole ones.
    side: u32,
    /// The shorter side to which larger images are shrunk, as those that the model trained on were; 0 for none.
    shrink: u32,
    failing: FailingFiles,
}

impl ListedImages {
    /// These images, decoded to a fraction of their size that is at least `side` ([`u32::MAX`] for whole ones) and shrunk to a
    /// shorter side of `shrink` pixels (0 for none).
    pub fn new(images: Vec<ListedImage>, side: u32, shrink: u32) -> Self {
        Self { images, side, shrink, failing: FailingFiles::default() }
    }
}

impl ImageSource for ListedImages {
    /// An image that is missing, changed or not allowed does not end the list: without a prepared table it contradicts
    /// nothing. The same holds for a bad sector, once waiting for the storage is over and the loader tries it again.
    fn image(&self, id: u64) -> Result<Image, DataError> {
        let none = || DataError::new("", FormatProblem::Content(format!("there is no image {id}")));
        let image = usize::try_from(id).ok().and_then(|id| self.images.get(id)).ok_or_else(none)?;
        let image = image.image(&DecodeLimits::default(), self.side, self.shrink);
        image.map_err(|error| match error {
            error if error.is_transient() => self.failing.evaluated(id, error, &self.images),
            error => error.with_format(ToString::to_string),
        })
    }

    fn label(&self, _: u64) -> Result<Option<u32>, DataError> {
        Ok(None)
    }
}
