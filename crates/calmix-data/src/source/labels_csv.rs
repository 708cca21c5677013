//! A folder of images and a list of their labels: `labels.csv`, or Hugging Face's `metadata.csv`.
//!
//! ```text
//! file,label
//! a.jpg,cat
//! more/b.png,dog
//! c.jpg,
//! ```
//!
//! The first line names the columns: `file` or `file_name`, and `label` or `labels`. Names are relative to the
//! list, with `/`. A row without a label is an image without one. Byte order marks and the line ends of any
//! system are fine. The list stands in the root, or one in each of `train`, `val` and `test` below it.
//!
//! Labelled rows become the subset `train` (or that of their folder), in the order of the list; rows without a
//! label become `unlabelled`. Classes are all labels in ascending order of their bytes, so the same images in a
//! [folder a class](super::folder) have the same classes.
//!
//! A list that contradicts itself or the files is an error with the line it stands in. An image that cannot be
//! decoded is skipped and reported.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Inspection;
use super::folder::{SPLITS, UNLABELLED, split};
use super::image_files::{ImageFiles, contents, is_named_like_an_image, walk};
use crate::error::{DataError, DataProblem};
use crate::manifest::{Encoding, ManifestBuilder};
use crate::prepare::Prepared;
use table::{LabelRow, LabelTable};

/// What becomes of images that no row names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unlisted {
    /// They are skipped and reported.
    #[default]
    LeaveOut,
    /// They are images without labels.
    Unlabelled,
}

/// How a list is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelsCsvOptions {
    /// How images are checked.
    pub inspection: Inspection,
    /// What becomes of images that no row names.
    pub unlisted: Unlisted,
}

const LISTS: [&str; 2] = ["labels.csv", "metadata.csv"];

/// Prepares the folder `root` with its list and writes the dataset to `target`.
///
/// # Errors
/// If the list contradicts itself or the files, none of the images can be read, a link leads out of the root, or
/// `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, options: &LabelsCsvOptions) -> Result<Prepared, DataError> {
    let lists = find_lists(root)?;
    let mut tables = Vec::with_capacity(lists.len());
    for (subset, folder, list) in lists {
        tables.push((subset, LabelTable::read(root, &folder, list)?));
    }
    let labels = tables.iter().flat_map(|(_, table)| &table.rows).filter_map(|row| row.label.as_deref());
    let classes: Vec<String> = labels.collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect();
    if classes.is_empty() {
        let list = tables.first().map_or(root.to_owned(), |(_, table)| table.path.clone());
        let problem = DataProblem::Content("not one row has a label".into());
        return Err(
            DataError::new(list, problem).hint("fill in the column label for some images of each class")
        );
    }
    let rows: usize = tables.iter().map(|(_, table)| table.rows.len()).sum();
    let mut image_files = ImageFiles::open(root, &options.inspection, rows as u64)?;
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    for (subset, table) in &tables {
        builder.subset(subset);
        for LabelRow { file, label } in &table.rows {
            let label = label.as_ref().and_then(|label| classes.binary_search(label).ok());
            if let Some(label) = label {
                image_files.listed(&mut builder, file, Some(label as u32))?;
            }
        }
    }
    add_unlabelled(root, &tables, options, &mut image_files, &mut builder)?;
    image_files.finish(builder)
}

fn add_unlabelled(
    root: &Path,
    tables: &[(&str, LabelTable)],
    options: &LabelsCsvOptions,
    image_files: &mut ImageFiles,
    builder: &mut ManifestBuilder,
) -> Result<(), DataError> {
    let has_rows = tables.iter().flat_map(|(_, table)| &table.rows).any(|row| row.label.is_none());
    let mut unlisted = Vec::new();
    let listed: BTreeSet<&str> =
        tables.iter().flat_map(|(_, table)| &table.rows).map(|row| row.file.as_str()).collect();
    walk(root, "", &mut |file| {
        if is_named_like_an_image(file) && !listed.contains(file) {
            unlisted.push(file.to_owned());
        }
        Ok(())
    })?;
    let take = options.unlisted == Unlisted::Unlabelled && !unlisted.is_empty();
    if has_rows || take {
        builder.subset(UNLABELLED);
    }
    for row in tables.iter().flat_map(|(_, table)| &table.rows).filter(|row| row.label.is_none()) {
        image_files.listed(builder, &row.file, None)?;
    }
    if take {
        return unlisted.iter().try_for_each(|file| image_files.found(builder, file, None));
    }
    if let Some(first) = unlisted.first() {
        let count = unlisted.len();
        let names = unlisted.iter().skip(1).take(4).fold(first.clone(), |names, name| names + ", " + name);
        let more = if count > 5 { ", …" } else { "" };
        let problem =
            DataProblem::Content(format!("images without a row were left out ({count}): {names}{more}"));
        builder.unreadable(
            DataError::new(root, problem).hint("add rows with an empty label, or ask for them as unlabelled"),
        );
    }
    Ok(())
}

/// The lists below `root`: subset, folder, name.
fn find_lists(root: &Path) -> Result<Vec<(&'static str, String, &'static str)>, DataError> {
    if let Some(list) = list_in(root, "")? {
        return Ok(vec![("train", String::new(), list)]);
    }
    let mut lists = Vec::new();
    for folder in contents(root, "")?.folders {
        if let Some(subset) = split(&folder).filter(|subset| *subset != UNLABELLED)
            && let Some(list) = list_in(root, &folder)?
        {
            lists.push((subset, folder, list));
        }
    }
    lists.sort_by_key(|(subset, ..)| SPLITS.iter().position(|(name, _)| name == subset));
    if lists.is_empty() {
        let problem = DataProblem::Content("no labels.csv and no metadata.csv in it".into());
        return Err(DataError::new(root, problem).hint("write one with the columns file and label"));
    }
    Ok(lists)
}

fn list_in(root: &Path, folder: &str) -> Result<Option<&'static str>, DataError> {
    let contents = contents(root, folder)?;
    let mut found = LISTS.into_iter().filter(|list| contents.files.iter().any(|file| file == list));
    let list = found.next();
    if found.next().is_some() {
        let problem = DataProblem::Content("both labels.csv and metadata.csv in it".into());
        return Err(DataError::new(root.join(folder), problem).hint("keep one of them"));
    }
    Ok(list)
}
