//! A list of images to predict: files, folders, WebDataset shards, URLs of object storage, and lists of paths.
//!
//! Nothing is prepared, and memory holds only the names of one folder per level, so a list may have any length. The order is
//! fixed: paths in the order given, files below a folder in byte order of their paths, members of a tar in archive order. An
//! unreadable image keeps its place in that order.

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

/// An iterator over the images of paths and lists, in order.
#[derive(Debug, Default)]
pub struct ImageList {
    /// Open sources; the innermost folder or tar is the last.
    open: Vec<PendingImages>,
    /// Why the list ended early.
    failure: Option<DataError>,
}

impl ImageList {
    /// Lists the images of these paths: files, folders and WebDataset shards (`.tar`).
    pub fn of_paths(paths: Vec<PathBuf>) -> Self {
        Self { open: vec![PendingImages::Paths(paths.into_iter(), None)], failure: None }
    }

    /// Lists the images of the paths in a text, one per line.
    pub fn of_lines(lines: Box<dyn BufRead + Send>) -> Self {
        Self { open: vec![PendingImages::Lines(lines, None)], failure: None }
    }

    /// Appends `others` to this list.
    #[must_use]
    pub fn then(mut self, mut others: Self) -> Self {
        others.open.append(&mut self.open);
        others
    }

    /// Keeps only the images whose files are in `shard`; other files are not opened.
    #[must_use]
    pub fn only(mut self, shard: FileShard) -> Self {
        for pending in &mut self.open {
            pending.share(shard);
        }
        self
    }

    /// Returns why the list ended early: an object store failed. The caller must check this after the last image.
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

/// A part of a list, as the source of a loader.
#[derive(Debug)]
pub struct ListedImages {
    /// The images; an id is an index into them.
    pub images: Vec<ListedImage>,
    /// The minimum shorter side when decoding at reduced size; [`u32::MAX`] to decode at full size.
    side: u32,
    /// The shorter side to which larger images are shrunk, as at training; 0 to keep their size.
    shrink: u32,
    failing: FailingFiles,
}

impl ListedImages {
    /// Makes a source of these images, with the minimum shorter side for decoding at reduced size ([`u32::MAX`] for full
    /// size) and the shorter side of shrunk images (0 to keep their size).
    pub fn new(images: Vec<ListedImage>, side: u32, shrink: u32) -> Self {
        Self { images, side, shrink, failing: FailingFiles::default() }
    }
}

impl ImageSource for ListedImages {
    /// Decodes an image. A missing, changed or forbidden image does not end the list, because there is no prepared table
    /// that it contradicts. Neither does a bad sector, once the loader has finished waiting for the storage.
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
