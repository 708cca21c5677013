//! Datasets as people have them, each reduced to a [manifest](crate::manifest).
//!
//! Sources of image files look at every file once while they prepare. What cannot be decoded is noted and left
//! out, so one bad photograph never ends a run; a link that leads out of the folder, or a list that contradicts
//! the files, is an error.

mod album;
pub mod folder;
pub mod imagenet;
mod inside;
pub mod labels_csv;
mod lines;
pub mod tar;
pub mod webdataset;
pub mod webvision;

use crate::decode::Limits;

/// How thoroughly an image file is looked at while it is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Its header, its size and its end: finds files that are no image, cut short or too large.
    Header,
    /// Decoded whole: finds damage inside the pixels too, at the price of one decoding.
    Full,
}

/// To this many images, sources decode every one of them unless told otherwise: a few minutes at most.
pub const FULL_UP_TO: u64 = 200_000;

/// How image files are looked at while they are prepared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inspection {
    /// How large an image may be.
    pub limits: Limits,
    /// How thoroughly; by default [`Check::Full`] up to [`FULL_UP_TO`] images and [`Check::Header`] beyond.
    pub check: Option<Check>,
}

impl Inspection {
    fn check_for(&self, images: u64) -> Check {
        self.check.unwrap_or(if images <= FULL_UP_TO { Check::Full } else { Check::Header })
    }
}
