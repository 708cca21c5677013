//! A folder of images: one folder per class.
//!
//! ```text
//! root/CLASS/…            a class, its images at any depth          subset train
//! root/unlabelled/…       images without labels (or unlabeled)      subset unlabelled
//! ```
//!
//! or, if every folder in the root has one of these names in any case, splits of the same layout:
//!
//! ```text
//! root/train/CLASS/…      (or training)      root/val/CLASS/… (or valid, validation)
//! root/test/CLASS/…       (or testing)       root/unlabelled/…, or root/train/unlabelled/…
//! ```
//!
//! A level of folders may name the group of an image, such as a patient: `root/CLASS/PATIENT/…` ([`FolderOptions::groups`]).
//! Folders with the same name are one group, even in different classes and splits.
//!
//! [`FolderLayout`] overrides this detection. The classes are the names of all class folders in byte order. Ids are assigned
//! in the order train, val, test and unlabelled; within a split by class; within a class by files and then folders, in name
//! order. Neither the listing order of the file system nor the locale matters.
//!
//! Hidden files, `Thumbs.db` and similar files are skipped, as are files that are neither images nor named like images.
//! Images that are unreadable or outside any class, and folders without images, are left out and listed.

use std::path::Path;

use calmix_formats::error::FormatError;
use calmix_formats::listing::{contents, walk};

use super::Inspection;
use super::image_files::{ImageFiles, Origin};
use super::labels_csv::is_list;
use super::layout::{ClassFolders, FolderLayout, GroupLevel};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};

/// Options for a folder of images.
#[derive(Debug, Clone, Default)]
pub struct FolderOptions {
    /// The checks of images.
    pub inspection: Inspection,
    /// The roles of the folders: splits or classes.
    pub layout: FolderLayout,
    /// The level of folders below the root that names the [group](crate::groups) of an image, not counting split folders: 2
    /// in `CLASS/GROUP/image.jpg`, 0 for none.
    pub groups: u32,
}

/// Returns whether there is a folder of a class with an image in it.
pub(super) fn has_classes(root: &Path, layout: FolderLayout, groups: u32) -> Result<bool, DataError> {
    let level = GroupLevel::new(groups, layout, root)?;
    Ok(!ClassFolders::find(root, layout, level)?.classes().is_empty())
}

/// Prepares the folder `root` and writes the dataset to `target`.
///
/// # Errors
/// If there is no class, two readings of the folders are possible, none of the images can be read, or `target`
/// cannot be written.
pub fn prepare(root: &Path, target: &Path, options: &FolderOptions) -> Result<Prepared, DataError> {
    let level = GroupLevel::new(options.groups, options.layout, root)?;
    let found = ClassFolders::find(root, options.layout, level)?;
    let classes = found.classes();
    if classes.is_empty() {
        return Err(no_class(root)?);
    }
    let mut image_files = ImageFiles::open(root, &options.inspection, found.files)?;
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    let mut left_out = found.left_out;
    left_out.extend(not_read(root)?);
    builder.left_out(left_out);
    for warning in found.warnings {
        builder.warn(warning);
    }
    let mut has_groups = false;
    for folder in &found.folders {
        builder.continue_subset(folder.subset);
        let class = folder.class.as_ref();
        let label = class.and_then(|class| classes.binary_search(class).ok()).map(|label| label as u32);
        let mut left_out = Vec::new();
        let mut add = |file: &str| {
            let group = level.and_then(|level| level.group(file, folder));
            has_groups |= group.is_some();
            image_files.add(&mut builder, file, label, group, Origin::Folder)
        };
        walk(root, &folder.folder, &mut left_out, &mut add)?;
        image_files.flush(&mut builder)?;
        builder.left_out(left_out);
    }
    if let Some(level) = level.filter(|_| !has_groups) {
        return Err(level.without_groups(root));
    }
    image_files.finish(builder)
}

fn no_class(root: &Path) -> Result<DataError, DataError> {
    let has_list = contents(root, "")?.files.iter().any(|file| is_list(file));
    Ok(DataError::content(root, "there is no class folder in it").hint(if has_list {
        "to read the list of labels beside the images, use --source labels-csv"
    } else {
        "put the images of each class into a folder named after the class"
    }))
}

/// Lists files in the root that another format would read.
fn not_read(root: &Path) -> Result<Vec<FormatError>, FormatError> {
    let mut not_read = Vec::new();
    for file in contents(root, "")?.files {
        let extension = Path::new(&file).extension().map(std::ffi::OsStr::to_ascii_lowercase);
        let is_archive = extension.is_some_and(|extension| {
            ["tar", "tgz", "gz", "zip", "7z"].iter().any(|known| extension == *known)
        });
        let (what, hint) = if is_list(&file) {
            (
                "this list of labels was not read, because the folders are the classes",
                "to read it, use --source labels-csv",
            )
        } else if is_archive {
            ("this archive beside the image folders was not read", "unpack it, or move it elsewhere")
        } else {
            continue;
        };
        not_read.push(FormatError::content(root.join(&file), what).hint(hint));
    }
    Ok(not_read)
}
