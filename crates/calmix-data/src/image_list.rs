//! Images to predict, one after the other: files, folders, WebDataset's shards, also in object storage, and lists of them.
//!
//! Nothing is prepared, and memory holds only the names of one folder per level, so a list may have any length. The
//! order is fixed: paths as they are given, the files below a folder in the order of the bytes of their paths, the
//! members of a tar in archive order. What cannot be read keeps its place in that order.

mod bad_file;
mod listed_image;
mod pending;
mod shard_file;

use std::io::BufRead;
use std::path::PathBuf;

use calmix_formats::decode::DecodeLimits;
use calmix_formats::image::Image;

use crate::error::DataError;
use crate::loader::ImageSource;
use bad_file::FailingFiles;
pub use listed_image::ListedImage;
use pending::PendingImages;
pub use shard_file::FileShard;

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
        let none = || DataError::content("", format!("there is no image {id}"));
        let image = usize::try_from(id).ok().and_then(|id| self.images.get(id)).ok_or_else(none)?;
        let image = image.image(&DecodeLimits::default(), self.side, self.shrink);
        image.map_err(|error| match error {
            error if error.is_transient() => self.failing.classify(id, error, &self.images),
            error => error.with_format(ToString::to_string),
        })
    }

    fn label(&self, _: u64) -> Result<Option<u32>, DataError> {
        Ok(None)
    }
}
