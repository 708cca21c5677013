//! The lists of labels that say the same as the folders of a dataset.
//!
//! A list takes precedence over [folders per class](super::folder). Whoever adds the first label to a list therefore has to list
//! the images of the folders, too: those of the classes with their labels, and the unlabelled ones, which would otherwise be left
//! out.

use std::path::Path;

use calmix_formats::listing::image_kind::{has_image_extension, is_image_by_content};
use calmix_formats::listing::walk;

use super::has_one_image_folder;
use super::layout::{ClassFolder, ClassFolders, FolderLayout, GroupLevel, split};
use crate::error::DataError;

/// A list that would replace folders.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FolderList {
    /// Its folder below the root; empty for the root itself.
    pub folder: String,
    /// Its rows, in the order of [`folder::prepare`](super::folder::prepare).
    pub rows: Vec<FolderRow>,
}

/// An image of a folder.
#[derive(Debug, PartialEq, Eq)]
pub struct FolderRow {
    /// Its path relative to the list.
    pub file: String,
    /// Its class; `None` for an unlabelled image.
    pub class: Option<String>,
    /// The name of its group, if any.
    pub group: Option<String>,
}

/// Makes the lists of the folders below `root`: one in the root, or one in each split. Images that are in no class, because there
/// are no class folders, are listed without a label. `groups` is the level of folders that names the group of an image, 0 for none.
///
/// # Errors
/// If two readings of the folders are possible, no list can name some of the images, or a folder cannot be read.
pub fn lists_of_folders(
    root: &Path,
    layout: FolderLayout,
    groups: u32,
) -> Result<Vec<FolderList>, DataError> {
    let level = GroupLevel::new(groups, layout, root)?;
    // A single folder of images is not a class, unless the user says so.
    if layout == FolderLayout::Auto && has_one_image_folder(root) {
        return Ok(vec![list_of_all(root)?]);
    }
    let found = ClassFolders::find(root, layout, level)?;
    if found.classes().is_empty() && !found.has_splits {
        return Ok(vec![list_of_all(root)?]);
    }
    let mut lists: Vec<FolderList> = Vec::new();
    for folder in &found.folders {
        let place = if found.has_splits { split_folder(root, folder)? } else { "" };
        let known = lists.iter().position(|list| list.folder == place);
        let index = known.unwrap_or_else(|| {
            lists.push(FolderList { folder: place.to_owned(), rows: Vec::new() });
            lists.len() - 1
        });
        let rows = &mut lists[index].rows;
        walk(root, &folder.folder, &mut Vec::new(), &mut |file| -> Result<(), DataError> {
            if is_image(root, file)? {
                let group = level.and_then(|level| level.group(file, folder)).map(str::to_owned);
                let below_list = file.strip_prefix(place).unwrap_or(file).trim_start_matches('/').to_owned();
                rows.push(FolderRow { file: below_list, class: folder.class.clone(), group });
            }
            Ok(())
        })?;
    }
    Ok(lists)
}

/// Lists all images below the root without labels.
fn list_of_all(root: &Path) -> Result<FolderList, DataError> {
    let mut list = FolderList::default();
    walk(root, "", &mut Vec::new(), &mut |file| -> Result<(), DataError> {
        if is_image(root, file)? {
            list.rows.push(FolderRow { file: file.to_owned(), class: None, group: None });
        }
        Ok(())
    })?;
    Ok(list)
}

/// Returns the split that contains a folder, by its name below the root.
fn split_folder<'a>(root: &Path, folder: &'a ClassFolder) -> Result<&'a str, DataError> {
    let first = folder.folder.split('/').next().unwrap_or_default();
    if split(first).is_some() {
        return Ok(first);
    }
    // A list in the root would take precedence over those of the splits.
    let problem = "this class folder is beside the splits, so no list of labels can name its images";
    Err(DataError::content(root.join(&folder.folder), problem).hint("move it into train"))
}

/// Returns whether a file is an image, or named like one: an image that cannot be read is reported, not forgotten.
///
/// # Errors
/// If the storage fails.
pub fn is_image(root: &Path, file: &str) -> Result<bool, DataError> {
    Ok(has_image_extension(file) || is_image_by_content(&root.join(file))?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The lists of a folder with these files, as lines.
    fn lists(files: &[&str], layout: FolderLayout, groups: u32) -> Result<Vec<String>, String> {
        let temp = tempfile::tempdir().unwrap();
        for file in files {
            let path = temp.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let lists = lists_of_folders(temp.path(), layout, groups).map_err(|error| error.to_string())?;
        let line = |list: &FolderList, row: &FolderRow| {
            let class = row.class.as_deref().unwrap_or("-");
            let group = row.group.as_deref().unwrap_or("-");
            format!("{}|{} {class} {group}", list.folder, row.file)
        };
        Ok(lists.iter().flat_map(|list| list.rows.iter().map(|row| line(list, row))).collect())
    }

    #[test]
    fn class_folders_become_rows() {
        let files =
            ["dog/2.jpg", "cat/a/1.jpg", "cat/0.png", "unlabelled/9.jpg", "cat/notes.txt", "stray.jpg"];
        assert_eq!(
            lists(&files, FolderLayout::Auto, 0).unwrap(),
            ["|cat/0.png cat -", "|cat/a/1.jpg cat -", "|dog/2.jpg dog -", "|unlabelled/9.jpg - -"]
        );
    }

    #[test]
    fn every_split_has_a_list() {
        let files = [
            "train/cat/0.jpg",
            "Test/cat/1.jpg",
            "unlabelled/2.jpg",
            "train/unlabelled/3.jpg",
            "Test/dog/4.jpg",
        ];
        assert_eq!(
            lists(&files, FolderLayout::Auto, 0).unwrap(),
            [
                "train|cat/0.jpg cat -",
                "train|unlabelled/3.jpg - -",
                "Test|cat/1.jpg cat -",
                "Test|dog/4.jpg dog -",
                "unlabelled|2.jpg - -"
            ]
        );
        let beside = ["cat/0.jpg", "test/cat/1.jpg"];
        let problem = lists(&beside, FolderLayout::Splits, 0).unwrap_err();
        assert!(problem.contains("cat: this class folder is beside the splits"), "{problem}");
    }

    #[test]
    fn images_without_class_folders_have_no_label() {
        assert_eq!(lists(&["b.jpg", "a.jpg"], FolderLayout::Auto, 0).unwrap(), ["|a.jpg - -", "|b.jpg - -"]);
        assert_eq!(lists(&["all/a.jpg"], FolderLayout::Auto, 0).unwrap(), ["|all/a.jpg - -"]);
        assert_eq!(lists(&["all/a.jpg"], FolderLayout::Classes, 0).unwrap(), ["|all/a.jpg all -"]);
        assert_eq!(lists(&["unlabelled/a.jpg"], FolderLayout::Auto, 0).unwrap(), ["|unlabelled/a.jpg - -"]);
    }

    #[test]
    fn folders_of_groups_are_kept() {
        let files = ["cat/p1/0.jpg", "cat/p2/1.jpg", "dog/p1/2.jpg", "unlabelled/p3/3.jpg"];
        assert_eq!(
            lists(&files, FolderLayout::Classes, 2).unwrap(),
            [
                "|cat/p1/0.jpg cat p1",
                "|cat/p2/1.jpg cat p2",
                "|dog/p1/2.jpg dog p1",
                "|unlabelled/p3/3.jpg - p3"
            ]
        );
    }
}
