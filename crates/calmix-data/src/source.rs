//! The formats of source datasets. Each source reduces one to a [manifest](crate::manifest).
//!
//! A source reads its files once, checks them, and writes the manifest. Samples stay in place; only files that are
//! compressed as a whole, or page by page as in Parquet, are unpacked into the prepared folder, because they do not allow
//! random access. An invalid published file is an error. An image file that cannot be decoded is skipped and listed, so that
//! one bad photo never ends a run; so is a link that leads out of the folder. Unresponsive storage is waited for and then an
//! error, because the unread file may be an image. A list that contradicts the files is an error.

pub mod cifar;
pub mod folder;
pub mod folder_lists;
pub mod idx;
mod image_files;
pub mod imagenet;
pub mod images;
mod inspection;
pub mod labels_csv;
mod layout;
mod names;
pub mod parquet_images;
mod source_spec;
pub mod stl10;
pub mod svhn;
pub mod vectors;
pub mod webdataset;
pub mod webvision;

use std::path::Path;

use calmix_formats::listing;
use calmix_formats::listing::image_kind::{contains_image, has_image_extension};

pub use inspection::{Check, FULL_UP_TO, Inspection};
pub use layout::FolderLayout;
pub use source_spec::{Cifar100Labels, SourceSpec};

use crate::error::DataError;

/// Visits the files below `root` that affect what `source` reads, in a fixed order.
pub(crate) fn for_each_file(
    source: &SourceSpec,
    root: &Path,
    visit: &mut dyn FnMut(&str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if let SourceSpec::Vectors { labels, more_features, .. } = source {
        return vectors::for_each_file(root, more_features, labels.as_deref(), visit);
    }
    let ends = |name: &str, extensions: &[&str]| {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        extension
            .is_some_and(|extension| extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)))
    };
    let matters = |name: &str| match source {
        SourceSpec::Folder { .. } | SourceSpec::Images { .. } => has_image_extension(name),
        SourceSpec::LabelsCsv { .. } => has_image_extension(name) || ends(name, &["csv"]),
        SourceSpec::Imagenet | SourceSpec::Webvision => {
            has_image_extension(name) || ends(name, &["csv", "txt"])
        }
        SourceSpec::Webdataset { .. } => ends(name, &["tar"]),
        SourceSpec::Parquet { .. } => ends(name, &["parquet"]),
        // Readme files beside a published dataset do not affect its samples.
        _ => !ends(name, &["txt", "md", "html", "pdf"]),
    };
    listing::walk(root, "", &mut Vec::new(), &mut |name| if matters(name) { visit(name) } else { Ok(()) })
}

/// Returns whether a folder of images has labels: a folder per class, or a list in which an image has a label. Other formats always
/// have labels, except vectors, which are read in the same way without them.
///
/// # Errors
/// If the folders or the list can be read in two ways, or the list contradicts the files.
pub fn has_labels(source: &SourceSpec, root: &Path) -> Result<bool, DataError> {
    match source {
        SourceSpec::Folder { layout, groups, .. } => folder::has_classes(root, *layout, *groups),
        SourceSpec::LabelsCsv { columns, .. } => labels_csv::has_label(root, columns),
        SourceSpec::Images { .. } => Ok(false),
        _ => Ok(true),
    }
}

/// Returns whether exactly one folder below `root` contains images and no subfolders: it then holds all images rather than
/// one class.
pub fn has_one_image_folder(root: &Path) -> bool {
    let folders = listing::contents(root, "").map(|contents| contents.folders).unwrap_or_default();
    let mut with_images = folders.iter().filter(|folder| contains_image(root, folder).unwrap_or(false));
    let Some(only) = with_images.next().filter(|_| with_images.next().is_none()) else { return false };
    listing::contents(root, only).is_ok_and(|contents| contents.folders.is_empty())
}

/// Returns whether a folder below `root` contains files that are named like images.
pub fn has_images_in_folders(root: &Path) -> bool {
    let folders = listing::contents(root, "").map(|contents| contents.folders).unwrap_or_default();
    folders.iter().any(|folder| contains_image(root, folder).unwrap_or(false))
}
