//! WebVision, read by its file lists.
//!
//! ```text
//! info/synsets.txt                   line n names class n: `n01440764 tench, Tinca tinca`
//! info/train_filelist_google.txt     `google/q0001/abc.jpg 0`, and _flickr.txt likewise
//! info/val_filelist.txt              `val000001.jpg 0`, in val_images_256, val_images or val
//! google/…  flickr/…
//! ```
//!
//! A class is its WordNet id with its official number. `train` is Google's list followed by Flickr's, one of which may be
//! missing; `val` may also be missing.

use std::collections::BTreeSet;
use std::path::Path;

use calmix_formats::source_dir::for_each_line;
use calmix_io::safe_path;

use super::Inspection;
use super::image_files::{ImageFiles, Origin};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};

const TRAIN: [&str; 2] = ["train_filelist_google.txt", "train_filelist_flickr.txt"];
const VAL: &str = "val_filelist.txt";
const VAL_FOLDERS: [&str; 3] = ["val_images_256", "val_images", "val"];

/// Prepares WebVision at `root` and writes the dataset to `target`.
///
/// # Errors
/// If a list is missing, contradicts the classes or names a file that is not there, none of the images can be
/// read, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, inspection: &Inspection) -> Result<Prepared, DataError> {
    let info = root.join("info");
    let classes = info.join("synsets.txt");
    safe_path::check(root, &classes)?;
    let classes = read_classes(&classes)?;
    let train: Vec<_> = TRAIN.iter().map(|list| info.join(list)).filter(|list| list.is_file()).collect();
    if train.is_empty() {
        let problem = format!("there is neither {} nor {} in it", TRAIN[0], TRAIN[1]);
        return Err(DataError::content(info, problem).hint("unpack info.tar into the dataset folder"));
    }
    let mut images = 0;
    for list in &train {
        safe_path::check(root, list)?;
        for_each_line(list, |_, _| -> Result<(), DataError> {
            images += 1;
            Ok(())
        })?;
    }
    let mut image_files = ImageFiles::open(root, inspection, images)?;
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    builder.subset("train");
    for list in &train {
        add_list(root, list, "", classes.len(), &mut image_files, &mut builder)?;
    }
    let val = info.join(VAL);
    if val.is_file() {
        safe_path::check(root, &val)?;
        image_files.flush(&mut builder)?;
        builder.subset("val");
        let folder = VAL_FOLDERS.into_iter().find(|folder| root.join(folder).is_dir());
        let folder = folder.ok_or_else(|| {
            DataError::content(root, format!("there is no folder {} in it", VAL_FOLDERS.join(" or ")))
                .hint(format!("unpack the validation images, or remove info/{VAL}"))
        })?;
        add_list(root, &val, &format!("{folder}/"), classes.len(), &mut image_files, &mut builder)?;
    }
    image_files.finish(builder)
}

fn read_classes(path: &Path) -> Result<Vec<String>, DataError> {
    let (mut classes, mut seen) = (Vec::new(), BTreeSet::new());
    for_each_line(path, |number, line| -> Result<(), DataError> {
        let wnid = line.split_whitespace().next().unwrap_or(line);
        if !seen.insert(wnid.to_owned()) {
            return Err(DataError::content(path, format!("{wnid} is listed twice"))
                .at(format!("line {number}"))
                .hint("download the list again"));
        }
        classes.push(wnid.to_owned());
        Ok(())
    })?;
    Ok(classes)
}

fn add_list(
    root: &Path,
    list: &Path,
    folder: &str,
    classes: usize,
    image_files: &mut ImageFiles,
    builder: &mut ManifestBuilder,
) -> Result<(), DataError> {
    for_each_line(list, |number, line| -> Result<(), DataError> {
        let wrong = |what: String| DataError::content(list, what).at(format!("line {number}"));
        let Some((file, label)) = line.rsplit_once(char::is_whitespace) else {
            return Err(wrong(format!("there is no label in {line:?}"))
                .hint("each line must be a file and its class number"));
        };
        let file = file.trim_end();
        if let Some(why) = safe_path::why_unsafe_here(file) {
            return Err(wrong(format!("the file name {file:?} {why}")).hint("download the list again"));
        }
        let label =
            label.parse().ok().filter(|&label: &u32| (label as usize) < classes).ok_or_else(|| {
                wrong(format!("the label is {label}, but there are {classes} classes"))
                    .hint("use the synsets.txt that came with the list")
            })?;
        let name = format!("{folder}{file}");
        if !root.join(&name).is_file() {
            return Err(wrong(format!("there is no file {name}")).hint("unpack all image archives"));
        }
        image_files.add(builder, &name, Some(label), None, Origin::List)
    })
}
