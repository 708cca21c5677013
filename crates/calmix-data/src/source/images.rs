//! A folder of images without labels, at any depth: what there is before the first label.
//!
//! All images become the subset `unlabelled`, in name order, and there are no classes. Hidden files, and files that are neither
//! images nor named like images, are skipped.

use std::path::Path;

use calmix_formats::listing::walk;

use super::Inspection;
use super::image_files::{ImageFiles, Origin};
use super::layout::UNLABELLED;
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};

/// Prepares the images below `root` and writes the dataset to `target`.
///
/// # Errors
/// If none of the images can be read, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, inspection: &Inspection) -> Result<Prepared, DataError> {
    let mut files = 0;
    walk(root, "", &mut Vec::new(), &mut |_| -> Result<(), DataError> {
        files += 1;
        Ok(())
    })?;
    let mut image_files = ImageFiles::open(root, inspection, files)?;
    let mut builder = ManifestBuilder::new(target, Vec::new(), Encoding::File)?;
    builder.subset(UNLABELLED);
    let mut left_out = Vec::new();
    walk(root, "", &mut left_out, &mut |file| {
        image_files.add(&mut builder, file, None, None, Origin::Folder)
    })?;
    image_files.flush(&mut builder)?;
    builder.left_out(left_out);
    image_files.finish(builder)
}
