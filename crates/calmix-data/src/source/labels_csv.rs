//! A folder of images with a list of their labels: `labels.csv`, or Hugging Face's `metadata.csv`.
//!
//! ```text
//! file,label
//! a.jpg,cat
//! more/b.png,dog
//! c.jpg,
//! ```
//!
//! The header names the columns: `file`, `path`, `image` or similar, and `label`, `class`, `category` or similar, in any
//! case ([`LabelColumns`] names others). A column `group` names the patient, video, site or writer of an image
//! ([`groups`](crate::groups)); an empty field means its own group. A column `drawn` says how a label was
//! [drawn](calmix_formats::labels::drawn). Other columns are ignored. Names are relative to the
//! list, with `/`. A row without a label is an unlabelled image. Byte order marks and all line endings are accepted. The
//! list is in the root, or there is one in each of `train`, `val` and `test`; `unlabelled` beside them may have one, too, whose
//! labelled rows belong to `train`.
//!
//! Labelled rows become the subset `train` (or that of their folder), in the order of the list; unlabelled rows become
//! `unlabelled`. The classes are all labels in byte order, so the same images in a [folder per class](super::folder) have
//! the same classes.
//!
//! A list that contradicts itself or the files is an error that names the line. An image that cannot be
//! decoded is left out and listed in the summary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::csv_table::{self, LabelTable};
use calmix_formats::labels::text::may_be_missing;
use calmix_formats::listing::image_kind::has_image_extension;
use calmix_formats::listing::{contents, walk};
use serde::{Deserialize, Serialize};

use super::Inspection;
use super::image_files::{ImageFiles, Origin};
use super::layout::{SPLITS, TRAIN, UNLABELLED, split};
use crate::data_warning::DataWarning;
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};

/// The treatment of images that no row names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unlisted {
    /// They are left out and listed in the summary.
    #[default]
    LeaveOut,
    /// They become unlabelled images.
    Unlabelled,
}

/// Options for a list of labels.
#[derive(Debug, Clone, Default)]
pub struct LabelsCsvOptions {
    /// The checks of images.
    pub inspection: Inspection,
    /// The treatment of images that no row names.
    pub unlisted: Unlisted,
    /// The columns to read.
    pub columns: LabelColumns,
}

const LISTS: [&str; 2] = ["labels.csv", "metadata.csv"];

/// Returns whether a file with this name is a list of labels.
pub(super) fn is_list(name: &str) -> bool {
    LISTS.iter().any(|list| list.eq_ignore_ascii_case(name))
}

/// Returns whether `root`, or a split in it, has a list.
pub fn has_list(root: &Path) -> bool {
    find_lists(root).is_ok()
}

/// Returns whether `root`, or a split in it, has a list with columns for images and labels.
pub fn has_labels(root: &Path) -> bool {
    let lists = find_lists(root).unwrap_or_default();
    lists.iter().any(|list| csv_table::has_labels(root, &list.path(root)))
}

/// Returns whether any row of a list has a label.
pub(super) fn has_label(root: &Path, columns: &LabelColumns) -> Result<bool, DataError> {
    for ListPlace { folder, name, .. } in find_lists(root)? {
        let table = LabelTable::read(root, &folder, &name, columns)?;
        if table.rows.iter().any(|row| row.label.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Prepares the folder `root` with its list and writes the dataset to `target`.
///
/// # Errors
/// If the list contradicts itself or the files, none of the images can be read, a link leads out of the root, or
/// `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, options: &LabelsCsvOptions) -> Result<Prepared, DataError> {
    let lists = find_lists(root)?;
    let mut tables = Vec::with_capacity(lists.len());
    for ListPlace { subset, folder, name } in lists {
        tables.push((subset, LabelTable::read(root, &folder, &name, &options.columns)?));
    }
    let labels = tables.iter().flat_map(|(_, table)| &table.rows).filter_map(|row| row.label.as_deref());
    let classes: Vec<String> = labels.collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect();
    if classes.is_empty() {
        let list = tables.first().map_or(root.to_owned(), |(_, table)| table.path.clone());
        return Err(DataError::content(list, "no row has a label")
            .hint("fill in the label column for some images of each class"));
    }
    let rows: usize = tables.iter().map(|(_, table)| table.rows.len()).sum();
    let mut image_files = ImageFiles::open(root, &options.inspection, rows as u64)?;
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    for name in classes.iter().filter(|name| may_be_missing(name)) {
        let rows = tables.iter().flat_map(|(_, table)| &table.rows);
        let samples = rows.filter(|row| row.label.as_ref() == Some(name)).count() as u64;
        builder.warn(DataWarning::MaybeMissing { name: name.clone(), samples });
    }
    for (subset, table) in &tables {
        image_files.flush(&mut builder)?;
        // `train` and `unlabelled` may each have a list of `train`.
        builder.continue_subset(subset);
        for row in &table.rows {
            let label = row.label.as_ref().and_then(|label| classes.binary_search(label).ok());
            if let Some(label) = label {
                image_files.add_listed(&mut builder, row, Some(label as u32))?;
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
    let (mut unlisted, mut left_out) = (Vec::new(), Vec::new());
    let listed: BTreeSet<&str> =
        tables.iter().flat_map(|(_, table)| &table.rows).map(|row| row.file.as_str()).collect();
    walk(root, "", &mut left_out, &mut |file| -> Result<(), DataError> {
        if has_image_extension(file) && !listed.contains(file) {
            unlisted.push(file.to_owned());
        }
        Ok(())
    })?;
    image_files.flush(builder)?;
    builder.left_out(left_out);
    let take = options.unlisted == Unlisted::Unlabelled && !unlisted.is_empty();
    if has_rows || take {
        builder.subset(UNLABELLED);
    }
    for row in tables.iter().flat_map(|(_, table)| &table.rows).filter(|row| row.label.is_none()) {
        image_files.add_listed(builder, row, None)?;
    }
    if take {
        return unlisted
            .iter()
            .try_for_each(|file| image_files.add(builder, file, None, None, Origin::Folder));
    }
    if let Some(first) = unlisted.first() {
        let count = unlisted.len();
        let names = unlisted.iter().skip(1).take(4).fold(first.clone(), |names, name| names + ", " + name);
        let more = if count > 5 { ", …" } else { "" };
        builder.unreadable(DataError::content(root, format!("images without a row were left out ({count}): {names}{more}")).hint(
            "to train on them without labels, add rows with an empty label or set dataset.unlabelled=true",
        ));
    }
    Ok(())
}

/// Where a list of labels is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPlace {
    /// The subset of its labelled rows.
    pub subset: &'static str,
    /// Its folder below the root; empty for the root itself.
    pub folder: String,
    /// Its file name.
    pub name: String,
}

impl ListPlace {
    /// Returns the path of the list.
    pub fn path(&self, root: &Path) -> PathBuf {
        root.join(&self.folder).join(&self.name)
    }
}

/// Finds the lists below `root`, those of `train` first; none if neither the root nor a split has one.
///
/// # Errors
/// If a folder cannot be listed, or has two lists.
pub fn existing_lists(root: &Path) -> Result<Vec<ListPlace>, DataError> {
    if let Some(name) = list_in(root, "")? {
        return Ok(vec![ListPlace { subset: TRAIN, folder: String::new(), name }]);
    }
    let mut lists = Vec::new();
    let mut of_unlabelled = Vec::new();
    for folder in contents(root, "")?.folders {
        let Some(subset) = split(&folder) else { continue };
        let Some(name) = list_in(root, &folder)? else { continue };
        if subset == UNLABELLED {
            of_unlabelled.push(ListPlace { subset: TRAIN, folder, name });
        } else {
            lists.push(ListPlace { subset, folder, name });
        }
    }
    // Beside folders of classes instead of splits with lists, a list in `unlabelled` would hide the classes.
    if !lists.is_empty() {
        lists.append(&mut of_unlabelled);
    }
    lists.sort_by_key(|list| SPLITS.iter().position(|(name, _)| *name == list.subset));
    Ok(lists)
}

fn find_lists(root: &Path) -> Result<Vec<ListPlace>, DataError> {
    let lists = existing_lists(root)?;
    if lists.is_empty() {
        let problem = "there is no labels.csv or metadata.csv in it";
        return Err(DataError::content(root, problem).hint("create one with the columns `file` and `label`"));
    }
    Ok(lists)
}

fn list_in(root: &Path, folder: &str) -> Result<Option<String>, DataError> {
    let mut lists = contents(root, folder)?.files.into_iter().filter(|file| is_list(file));
    let list = lists.next();
    if let (Some(first), Some(second)) = (&list, lists.next()) {
        let problem = format!("it contains both {first} and {second}");
        return Err(DataError::content(root.join(folder), problem).hint("keep one of them"));
    }
    Ok(list)
}
