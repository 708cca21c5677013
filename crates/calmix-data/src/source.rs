//! The formats that datasets come in. Each source reduces one to a [manifest](crate::manifest).
//!
//! Each source reads its files once, checks them, and writes the manifest. Samples stay where they are; only what
//! is compressed as a whole, or page by page as in Parquet, is unpacked into the prepared folder, because nothing inside it
//! can be reached otherwise. A published file that is not what it should be is an error; an image file that cannot be decoded is
//! skipped and listed, so one bad photograph never ends a run; so is a link that leads out of the folder. Storage that
//! does not respond is waited for and then an error, because the unread file may be an image. A list that contradicts
//! the files is an error.

pub mod cifar;
pub mod folder;
pub mod idx;
mod image_files;
pub(crate) mod image_kind;
pub mod imagenet;
pub mod labels_csv;
mod layout;
mod lines;
pub(crate) mod listing;
mod names;
mod numbered_classes;
pub mod parquet_images;
mod source_dir;
pub mod stl10;
pub mod svhn;
pub mod tar;
pub mod vectors;
pub mod webdataset;
pub mod webvision;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use image_kind::{holds_image, is_named_like_an_image};
pub use layout::FolderLayout;

use crate::decode::DecodeLimits;
use crate::error::DataError;
use crate::prepare::{PrepareProgress, SourceSpec};

/// How many samples the files of a format without a header must hold.
///
/// Without this check, such a file that was cut between two samples would look complete.
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
    /// Its header, its size and its end: finds files that are not an image, cut short or too large.
    Header,
    /// Decoded whole: finds damage inside the pixels too, at the price of one decoding.
    Full,
}

/// Up to this many images, sources decode every image by default, which takes a few minutes at most.
pub const FULL_UP_TO: u64 = 200_000;

/// How image files are read during preparation.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// How large an image may be.
    pub limits: DecodeLimits,
    /// How thoroughly; by default [`Check::Full`] up to [`FULL_UP_TO`] images and [`Check::Header`] beyond.
    pub check: Option<Check>,
    /// The shorter side to which larger images are [shrunk](crate::shrink); 0 for none.
    pub shrink: u32,
    /// Threads that read them; 0 for one per core. Results do not depend on it.
    pub threads: usize,
    /// Receives the progress of the preparation.
    pub progress: Option<Arc<PrepareProgress>>,
    /// The folder in which a preparation of shards keeps what it has read, to continue after a kill; `None` to keep nothing.
    pub scans: Option<PathBuf>,
}

impl Inspection {
    fn check_for(&self, images: u64) -> Check {
        self.check.unwrap_or(if images <= FULL_UP_TO { Check::Full } else { Check::Header })
    }
}

/// Visits the files below `root` that affect what `source` reads, in a fixed order.
pub(crate) fn for_each_file(
    source: &SourceSpec,
    root: &Path,
    visit: &mut dyn FnMut(&str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if let SourceSpec::Vectors { labels, .. } = source {
        return vectors::for_each_file(root, labels.as_deref(), visit);
    }
    let ends = |name: &str, endings: &[&str]| {
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.iter().any(|known| known.eq_ignore_ascii_case(ending)))
    };
    let matters = |name: &str| match source {
        SourceSpec::Folder { .. } => is_named_like_an_image(name),
        SourceSpec::LabelsCsv { .. } => is_named_like_an_image(name) || ends(name, &["csv"]),
        SourceSpec::Imagenet | SourceSpec::Webvision => {
            is_named_like_an_image(name) || ends(name, &["csv", "txt"])
        }
        SourceSpec::Webdataset { .. } => ends(name, &["tar"]),
        SourceSpec::Parquet { .. } => ends(name, &["parquet"]),
        // Readme files beside a published dataset do not affect its samples.
        _ => !ends(name, &["txt", "md", "html", "pdf"]),
    };
    listing::walk(root, "", &mut Vec::new(), &mut |name| if matters(name) { visit(name) } else { Ok(()) })
}

/// Whether exactly one folder below `root` contains images, and no folders: it stores all images rather than one class.
pub fn has_one_image_folder(root: &Path) -> bool {
    let folders = listing::contents(root, "").map(|contents| contents.folders).unwrap_or_default();
    let mut with_images = folders.iter().filter(|folder| holds_image(root, folder).unwrap_or(false));
    let Some(only) = with_images.next().filter(|_| with_images.next().is_none()) else { return false };
    listing::contents(root, only).is_ok_and(|contents| contents.folders.is_empty())
}

/// Whether a folder below `root` holds files that are named like images.
pub fn has_images_in_folders(root: &Path) -> bool {
    let folders = listing::contents(root, "").map(|contents| contents.folders).unwrap_or_default();
    folders.iter().any(|folder| holds_image(root, folder).unwrap_or(false))
}
