//! ImageNet (ILSVRC 2012) in its unpacked layout: `train/n01440764/*.JPEG`, `val/…`, in the root or in Kaggle's
//! `ILSVRC/Data/CLS-LOC`.
//!
//! A class is its WordNet id, because readable names are not unique (two classes are called crane). `LOC_synset_mapping.txt`
//! lists the classes if it is in the root; otherwise the folders of `train` are the classes.
//!
//! `val` has either one folder per class, or is flat as published. The labels of a flat `val` come from
//! `LOC_val_solution.csv` (Kaggle), from `imagenet_2012_validation_synset_labels.txt` (one WordNet id per line, in the order
//! of the file names), or from a file in either form under another name. The development kit's
//! `ILSVRC2012_validation_ground_truth.txt` is refused: its numbers follow their own order, and taking them for the
//! alphabetical order is a common mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use calmix_formats::listing::{contents, walk};
use calmix_formats::source_dir::for_each_line;
use calmix_io::safe_path;
use calmix_io::text::counted;

use super::Inspection;
use super::image_files::{ImageFiles, Origin};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};

/// Options for ImageNet.
#[derive(Debug, Clone, Default)]
pub struct ImagenetOptions {
    /// The checks of images.
    pub inspection: Inspection,
    /// The labels of a flat `val`, if they are not in the root under one of the usual names.
    pub truth: Option<PathBuf>,
}

const TRUTHS: [&str; 2] = ["LOC_val_solution.csv", "imagenet_2012_validation_synset_labels.txt"];

/// Prepares ImageNet at `root` and writes the dataset to `target`, with the subsets `train` and `val`.
///
/// # Errors
/// If the layout is another, the lists contradict the files, none of the images can be read, or `target` cannot
/// be written.
pub fn prepare(root: &Path, target: &Path, options: &ImagenetOptions) -> Result<Prepared, DataError> {
    let base = ["", "ILSVRC/Data/CLS-LOC/"].into_iter().find(|base| root.join(base).join("train").is_dir());
    let base = base.ok_or_else(|| {
        let problem = "there is no folder `train` in it";
        DataError::content(root, problem).hint("pass the folder that contains train and val")
    })?;
    let train = format!("{base}train");
    let folders = class_folders(root, &train)?;
    let classes = find_classes(root, &train, &folders)?;
    let mut images = 0;
    walk(root, &train, &mut Vec::new(), &mut |_| -> Result<(), DataError> {
        images += 1;
        Ok(())
    })?;
    let mut image_files = ImageFiles::open(root, &options.inspection, images)?;
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    builder.subset("train");
    add_folders(root, &train, &folders, &classes, &mut image_files, &mut builder)?;
    let val = format!("{base}val");
    if root.join(&val).is_dir() {
        builder.subset("val");
        let folders = class_folders(root, &val)?;
        if folders.is_empty() {
            add_flat(root, &val, options, &classes, &mut image_files, &mut builder)?;
        } else {
            add_folders(root, &val, &folders, &classes, &mut image_files, &mut builder)?;
        }
    }
    image_files.finish(builder)
}

fn add_folders(
    root: &Path,
    split: &str,
    folders: &[String],
    classes: &[String],
    image_files: &mut ImageFiles,
    builder: &mut ManifestBuilder,
) -> Result<(), DataError> {
    for wnid in folders {
        let name = format!("{split}/{wnid}");
        let label = classes.binary_search(wnid).map_err(|_| {
            DataError::content(root.join(&name), "a class folder that LOC_synset_mapping.txt does not list")
                .hint("remove the folder, or add its class to the list")
        })?;
        let mut left_out = Vec::new();
        let mut add = |file: &str| image_files.add(builder, file, Some(label as u32), None, Origin::Folder);
        walk(root, &name, &mut left_out, &mut add)?;
        image_files.flush(builder)?;
        builder.left_out(left_out);
    }
    Ok(())
}

fn add_flat(
    root: &Path,
    val: &str,
    options: &ImagenetOptions,
    classes: &[String],
    image_files: &mut ImageFiles,
    builder: &mut ManifestBuilder,
) -> Result<(), DataError> {
    let files = contents(root, val)?.files;
    if files.is_empty() {
        return Ok(());
    }
    let usual = TRUTHS.iter().map(|name| root.join(name)).find(|path| path.is_file());
    usual.iter().try_for_each(|path| safe_path::check(root, path))?;
    let Some(truth) = options.truth.clone().or(usual) else {
        let problem = "the images are not in class folders, and there is no list of their classes";
        let hint = format!(
            "put {} into the dataset folder, or sort the images into class folders",
            TRUTHS.join(" or ")
        );
        return Err(DataError::content(root.join(val), problem).hint(hint));
    };
    let truth = ValClasses::read(&truth)?;
    truth.refuse_other_count(files.len())?;
    for (row, file) in files.iter().enumerate() {
        let wnid = truth.of(file, row)?;
        let label = classes.binary_search(wnid).map_err(|_| {
            DataError::content(&truth.path, format!("{wnid}, the class of {file}, is not in train"))
                .hint("use the complete train, or a val with the same classes")
        })?;
        image_files.add(builder, &format!("{val}/{file}"), Some(label as u32), None, Origin::List)?;
    }
    Ok(())
}

/// The labels of a flat `val`.
struct ValClasses {
    path: PathBuf,
    by_name: BTreeMap<String, String>,
    in_order: Vec<String>,
}

impl ValClasses {
    fn read(path: &Path) -> Result<Self, DataError> {
        let mut truth = Self { path: path.to_owned(), by_name: BTreeMap::new(), in_order: Vec::new() };
        let mut header = 0;
        for_each_line(path, |number, line| -> Result<(), DataError> {
            let wrong = |what: String| DataError::content(path, what).at(format!("line {number}"));
            if number == 1 && line == "ImageId,PredictionString" {
                header = 1;
                return Ok(());
            }
            if line.parse::<u32>().is_ok() {
                return Err(wrong(
                    "numbers of the development kit, which do not follow the order of the WordNet ids".into(),
                )
                .hint(format!("use {} instead", TRUTHS.join(" or "))));
            }
            let (name, rest) = line.split_once(',').unwrap_or(("", line));
            let wnid = rest.split_whitespace().next().unwrap_or_default();
            if !is_wnid(wnid) {
                return Err(wrong(format!("no WordNet id in {line:?}"))
                    .hint("each line must name a class such as n01440764"));
            }
            if name.is_empty() {
                // The reader skips empty lines, but here each would stand for an image.
                if number != header + truth.in_order.len() as u64 + 1 {
                    return Err(wrong(
                        "the line before it is empty, and the list assigns classes by order".into(),
                    )
                    .hint("download the list again"));
                }
                truth.in_order.push(wnid.to_owned());
            } else if truth.by_name.insert(name.to_owned(), wnid.to_owned()).is_some() {
                return Err(wrong(format!("{name} is listed twice")).hint("keep one line per image"));
            }
            Ok(())
        })?;
        Ok(truth)
    }

    /// Refuses a list with another number of lines: it assigns classes by order, so all labels would be wrong.
    fn refuse_other_count(&self, files: usize) -> Result<(), DataError> {
        let lines = self.in_order.len();
        if self.by_name.is_empty() && lines != files {
            let lines = counted(lines as u64, "line");
            let images = counted(files as u64, "image");
            return Err(DataError::content(&self.path, format!("{lines} in the list, but {images} in val"))
                .hint("complete val: the list assigns classes by file order"));
        }
        Ok(())
    }

    fn of(&self, file: &str, row: usize) -> Result<&String, DataError> {
        let stem = file.split('.').next().unwrap_or(file);
        let wnid = if self.by_name.is_empty() { self.in_order.get(row) } else { self.by_name.get(stem) };
        wnid.ok_or_else(|| {
            let problem = format!("the list has no line for {file}");
            DataError::content(&self.path, problem).hint("download the list again")
        })
    }
}

fn class_folders(root: &Path, split: &str) -> Result<Vec<String>, DataError> {
    let contents = contents(root, split)?;
    if let Some(other) = contents.folders.iter().find(|folder| !is_wnid(folder)) {
        let problem = "a folder that is not named like a class such as n01440764";
        return Err(DataError::content(root.join(split).join(other), problem)
            .hint("move it elsewhere, or use --source folder"));
    }
    let packed = |file: &&String| Path::new(file).extension().is_some_and(|extension| extension == "tar");
    if let Some(packed) = contents.files.iter().find(packed) {
        let problem = "the archive of a class that was not unpacked";
        return Err(DataError::content(root.join(split).join(packed), problem)
            .hint("unpack it into a folder of the same name"));
    }
    Ok(contents.folders)
}

/// Lists the classes in ascending order.
fn find_classes(root: &Path, train: &str, folders: &[String]) -> Result<Vec<String>, DataError> {
    let mapping = root.join("LOC_synset_mapping.txt");
    if !mapping.is_file() {
        if folders.is_empty() {
            return Err(DataError::content(root.join(train), "there is no class folder in it")
                .hint("unpack the archives of the classes into it"));
        }
        return Ok(folders.to_vec());
    }
    safe_path::check(root, &mapping)?;
    let mut classes = BTreeSet::new();
    for_each_line(&mapping, |number, line| -> Result<(), DataError> {
        let wnid = line.split_whitespace().next().filter(|wnid| is_wnid(wnid));
        if !wnid.is_some_and(|wnid| classes.insert(wnid.to_owned())) {
            let problem = format!("no WordNet id, or a repeated one, in {line:?}");
            return Err(DataError::content(&mapping, problem)
                .at(format!("line {number}"))
                .hint("download it again"));
        }
        Ok(())
    })?;
    Ok(classes.into_iter().collect())
}

fn is_wnid(name: &str) -> bool {
    name.len() == 9 && name.starts_with('n') && name.bytes().skip(1).all(|digit| digit.is_ascii_digit())
}
