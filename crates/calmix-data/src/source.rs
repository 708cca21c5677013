//! The formats that datasets come in. Each source reduces one to a [manifest](crate::manifest).
//!
//! Each source reads its files once, checks them, and writes the manifest. Samples stay where they are; only what
//! is compressed as a whole is unpacked into the prepared folder, because nothing inside it can be reached
//! otherwise. A published file that is not what it should be is an error; an image file that cannot be decoded is
//! skipped and reported, so one bad photograph never ends a run. A link that leads out of the folder, or a list that
//! contradicts the files, is an error.

pub mod cifar;
pub mod folder;
pub mod idx;
mod image_files;
pub mod imagenet;
pub mod labels_csv;
mod lines;
mod names;
mod source_dir;
pub mod stl10;
pub mod svhn;
pub mod tar;
pub mod webdataset;
pub mod webvision;

use crate::decode::DecodeLimits;

/// How many samples the files of a format without a header must hold.
///
/// Such a file that was cut between two samples looks whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// As many as the published dataset.
    Official,
    /// Any whole number above zero, for another dataset in the same format.
    Any,
}

/// How thoroughly an image file is checked during preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Its header, its size and its end: finds files that are no image, cut short or too large.
    Header,
    /// Decoded whole: finds damage inside the pixels too, at the price of one decoding.
    Full,
}

/// Up to this many images, sources decode every image by default, which takes a few minutes at most.
pub const FULL_UP_TO: u64 = 200_000;

/// How image files are checked during preparation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inspection {
    /// How large an image may be.
    pub limits: DecodeLimits,
    /// How thoroughly; by default [`Check::Full`] up to [`FULL_UP_TO`] images and [`Check::Header`] beyond.
    pub check: Option<Check>,
}

impl Inspection {
    fn check_for(&self, images: u64) -> Check {
        self.check.unwrap_or(if images <= FULL_UP_TO { Check::Full } else { Check::Header })
    }
}
