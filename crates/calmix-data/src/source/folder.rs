//! A folder of images: one folder a class.
//!
//! ```text
//! root/CLASS/…            a class, its images at any depth          subset train
//! root/unlabelled/…       images without labels (or unlabeled)      subset unlabelled
//! ```
//!
//! or, if every folder in the root has one of these names, splits of the same layout:
//!
//! ```text
//! root/train/CLASS/…      root/val/CLASS/… (or valid, validation)      root/test/CLASS/…
//! root/unlabelled/…       or root/train/unlabelled/…
//! ```
//!
//! Classes are all names of class folders in ascending order of their bytes. Ids go through train, val, test and
//! unlabelled; in each class by class; in a class through its files and then its folders, by name: neither the
//! order in which a system lists files nor its language matters.
//!
//! Hidden files, `Thumbs.db` and the like are skipped, as is every file that neither is an image nor is named
//! like one. Images that cannot be read, or lie outside any class, are skipped and reported.

use std::collections::BTreeSet;
use std::path::Path;

use super::Inspection;
use super::image_files::{ImageFiles, contents, is_named_like_an_image, walk};
use crate::error::{DataError, DataProblem};
use crate::manifest::{Encoding, ManifestBuilder};
use crate::prepare::Prepared;

/// What splits are called, and what they may be called in a folder.
pub(super) const SPLITS: [(&str, &[&str]); 4] = [
    ("train", &["train"]),
    ("val", &["val", "valid", "validation"]),
    ("test", &["test"]),
    (UNLABELLED, &["unlabelled", "unlabeled"]),
];

/// The subset of images without labels.
pub(super) const UNLABELLED: &str = "unlabelled";

/// A folder whose files all have one class, or none.
#[derive(Debug)]
struct ClassFolder {
    subset: &'static str,
    folder: String,
    class: Option<String>,
}

/// Prepares the folder `root` and writes the dataset to `target`.
///
/// # Errors
/// If there is no class, none of the images can be read, a link leads out of the root, or `target` cannot be
/// written.
pub fn prepare(root: &Path, target: &Path, inspection: &Inspection) -> Result<Prepared, DataError> {
    let mut strays = Vec::new();
    let groups = find_groups(root, &mut strays)?;
    let classes: BTreeSet<&str> = groups.iter().filter_map(|group| group.class.as_deref()).collect();
    let classes: Vec<String> = classes.into_iter().map(str::to_owned).collect();
    let mut images = 0;
    for group in &groups {
        walk(root, &group.folder, &mut |_| {
            images += 1;
            Ok(())
        })?;
    }
    let mut image_files = ImageFiles::open(root, inspection, images)?;
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    for stray in strays {
        builder.unreadable(stray);
    }
    let mut subset = "";
    for group in &groups {
        if subset != group.subset {
            builder.subset(group.subset);
            subset = group.subset;
        }
        let class = group.class.as_ref();
        let label = class.and_then(|class| classes.binary_search(class).ok()).map(|label| label as u32);
        walk(root, &group.folder, &mut |file| image_files.found(&mut builder, file, label))?;
    }
    image_files.finish(builder)
}

fn find_groups(root: &Path, strays: &mut Vec<DataError>) -> Result<Vec<ClassFolder>, DataError> {
    let top = contents(root, "")?;
    let splits = top.folders.iter().filter(|&folder| split(folder).is_some()).count();
    let is_split = splits == top.folders.len() && top.folders.iter().any(|folder| folder == "train");
    let mut groups = Vec::new();
    if is_split {
        for folder in &top.folders {
            let subset = split(folder).unwrap_or(UNLABELLED);
            if subset == UNLABELLED {
                groups.push(ClassFolder { subset, folder: folder.clone(), class: None });
            } else {
                find_classes(root, folder, subset, &mut groups, strays)?;
            }
        }
    } else {
        refuse_mixture(root, &top.folders)?;
        find_classes(root, "", "train", &mut groups, strays)?;
    }
    // Stable: classes stay in their order within a subset.
    groups.sort_by_key(|group| SPLITS.iter().position(|(name, _)| *name == group.subset));
    if groups.iter().all(|group| group.class.is_none()) {
        let problem = DataProblem::Content("no folder of a class in it".into());
        let has_list =
            ["labels.csv", "metadata.csv"].iter().any(|name| top.files.iter().any(|file| file == name));
        return Err(DataError::new(root, problem).hint(if has_list {
            "there is a list of labels beside the images: prepare it as labels-csv"
        } else {
            "put the images of each class into a folder of its name"
        }));
    }
    Ok(groups)
}

/// A `train` that itself holds folders stands beside folders that are no splits: one reading of it is wrong.
fn refuse_mixture(root: &Path, folders: &[String]) -> Result<(), DataError> {
    let Some(other) = folders.iter().find(|folder| split(folder).is_none()) else { return Ok(()) };
    let has_train = folders.iter().any(|folder| folder == "train");
    if !has_train || contents(root, "train")?.folders.is_empty() {
        return Ok(());
    }
    let problem =
        DataProblem::Content(format!("{other} stands beside train, which holds folders of its own"));
    Err(DataError::new(root, problem).hint("move everything but train, val, test and unlabelled away"))
}

fn find_classes(
    root: &Path,
    folder: &str,
    subset: &'static str,
    groups: &mut Vec<ClassFolder>,
    strays: &mut Vec<DataError>,
) -> Result<(), DataError> {
    let contents = contents(root, folder)?;
    let path = root.join(folder);
    let images = contents.files.iter().filter(|file| is_named_like_an_image(file)).count();
    if images > 0 {
        let problem = DataProblem::Content(format!("images outside any class were left out: {images}"));
        strays.push(
            DataError::new(&path, problem).hint("put them into the folder of their class, or unlabelled"),
        );
    }
    for name in contents.folders {
        let below = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        match split(&name) {
            Some(UNLABELLED) if subset == "train" => {
                groups.push(ClassFolder { subset: UNLABELLED, folder: below, class: None });
            }
            Some(UNLABELLED) => {
                let problem = DataProblem::Content(format!("images without labels in {subset}"));
                return Err(DataError::new(root.join(below), problem)
                    .hint("move the folder beside train: val and test need labels"));
            }
            _ => groups.push(ClassFolder { subset, folder: below, class: Some(name) }),
        }
    }
    Ok(())
}

/// The split that a folder of this name holds.
pub(super) fn split(folder: &str) -> Option<&'static str> {
    SPLITS.iter().find(|(_, names)| names.contains(&folder)).map(|(name, _)| *name)
}
