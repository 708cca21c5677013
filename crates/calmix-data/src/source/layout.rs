//! Determines which folders are splits and which are classes.

mod ambiguity;
mod class_folder;
mod group_level;

use std::collections::BTreeSet;
use std::path::Path;

use calmix_formats::error::FormatError;
use calmix_formats::listing::image_kind::{has_image_extension, is_image_by_content};
use calmix_formats::listing::{Contents, below, contents, walk};

use crate::data_warning::DataWarning;
use crate::error::DataError;

pub use self::class_folder::FolderLayout;
pub(super) use self::class_folder::{ClassFolder, SPLITS, TRAIN, UNLABELLED, split};
pub(super) use self::group_level::GroupLevel;

/// The class folders of a dataset.
#[derive(Debug, Default)]
pub(super) struct ClassFolders {
    /// Whether the folders of the root are splits.
    pub(super) has_splits: bool,
    /// The folders, sorted by subset and class.
    pub(super) folders: Vec<ClassFolder>,
    /// The number of files in all of them.
    pub(super) files: u64,
    /// Files and folders that are not part of the dataset.
    pub(super) left_out: Vec<FormatError>,
    pub(super) warnings: Vec<DataWarning>,
}

impl ClassFolders {
    /// Finds the class folders below `root`, and those of unlabelled images.
    pub(super) fn find(
        root: &Path,
        layout: FolderLayout,
        groups: Option<GroupLevel>,
    ) -> Result<Self, DataError> {
        let mut top = contents(root, "")?;
        let mut found = Self { left_out: std::mem::take(&mut top.left_out), ..Self::default() };
        let has_splits = match layout {
            FolderLayout::Auto | FolderLayout::Nested => found.has_splits(root, &top)?,
            FolderLayout::Classes => false,
            FolderLayout::Splits => true,
        };
        found.has_splits = has_splits;
        if has_splits {
            found.add_splits(root, &top, layout)?;
        } else {
            found.add_classes(root, "", TRAIN, layout)?;
        }
        found.drop_empty(root)?;
        // The sort is stable, so classes keep their order within a subset.
        found.folders.sort_by_key(|folder| SPLITS.iter().position(|(name, _)| *name == folder.subset));
        if layout == FolderLayout::Auto {
            found.check_single_class(root, has_splits)?;
            // Inner folders that name groups are not classes.
            if !groups.is_some_and(GroupLevel::is_inside_classes) {
                found.check_class_groups(root, has_splits)?;
            }
        }
        Ok(found)
    }

    /// Returns the names of all classes, ascending.
    pub(super) fn classes(&self) -> Vec<String> {
        let classes: BTreeSet<&str> =
            self.folders.iter().filter_map(|folder| folder.class.as_deref()).collect();
        classes.into_iter().map(str::to_owned).collect()
    }

    fn add_splits(&mut self, root: &Path, top: &Contents, layout: FolderLayout) -> Result<(), DataError> {
        let of =
            |name: &str| top.folders.iter().filter(|folder| split(folder) == Some(name)).collect::<Vec<_>>();
        let has_train = !of(TRAIN).is_empty();
        self.report_stray_images(root, "", top);
        for (subset, _) in SPLITS {
            let folders = of(subset);
            if folders.len() > 1 {
                let folders = folders.iter().map(|&folder| folder.clone()).collect();
                self.warnings.push(DataWarning::SplitTwice { subset: subset.to_owned(), folders });
            }
        }
        for folder in &top.folders {
            match split(folder) {
                Some(UNLABELLED) => self.push(UNLABELLED, folder.clone(), None),
                Some(subset) => self.add_classes(root, folder, subset, layout)?,
                None if has_train => {
                    let problem = "this folder beside the splits was not read";
                    let hint = "move it into one of them";
                    self.left_out.push(FormatError::content(root.join(folder), problem).hint(hint));
                }
                None => self.push(TRAIN, folder.clone(), Some(folder.clone())),
            }
        }
        Ok(())
    }

    /// Adds the classes in `folder`, which is the root or a split.
    fn add_classes(
        &mut self,
        root: &Path,
        folder: &str,
        subset: &'static str,
        layout: FolderLayout,
    ) -> Result<(), DataError> {
        let mut inside = contents(root, folder)?;
        // Stray files in the root were recorded when it was listed.
        if !folder.is_empty() {
            self.left_out.append(&mut inside.left_out);
        }
        self.report_stray_images(root, folder, &inside);
        for name in inside.folders {
            let path = below(folder, &name);
            match split(&name) {
                Some(UNLABELLED) if subset == TRAIN => self.push(UNLABELLED, path, None),
                Some(UNLABELLED) => {
                    let problem = format!("unlabelled images in {subset} were not read");
                    let hint = "move the folder next to train: images of val and test need labels";
                    self.left_out.push(FormatError::content(root.join(path), problem).hint(hint));
                }
                _ if layout == FolderLayout::Nested => {
                    let group = contents(root, &path)?;
                    self.report_stray_images(root, &path, &group);
                    self.left_out.extend(group.left_out);
                    for class in group.folders {
                        self.push(subset, below(&path, &class), Some(class));
                    }
                }
                _ => self.push(subset, path, Some(name)),
            }
        }
        Ok(())
    }

    fn push(&mut self, subset: &'static str, folder: String, class: Option<String>) {
        self.folders.push(ClassFolder { subset, folder, class });
    }

    fn report_stray_images(&mut self, root: &Path, folder: &str, inside: &Contents) {
        let images = inside.files.iter().filter(|file| has_image_extension(file)).count();
        if images > 0 {
            let problem = format!("images outside any class were left out: {images}");
            let hint = "move them into the folder of their class, or into unlabelled";
            let path = if folder.is_empty() { root.to_owned() } else { root.join(folder) };
            self.left_out.push(FormatError::content(path, problem).hint(hint));
        }
    }

    /// Removes folders without images, which are not classes, and counts the files of the others.
    fn drop_empty(&mut self, root: &Path) -> Result<(), DataError> {
        let mut kept = Vec::with_capacity(self.folders.len());
        for folder in std::mem::take(&mut self.folders) {
            let (mut files, mut has_image) = (0, false);
            walk(root, &folder.folder, &mut Vec::new(), &mut |file| -> Result<(), FormatError> {
                files += 1;
                has_image = has_image || has_image_extension(file) || is_image_by_content(&root.join(file))?;
                Ok(())
            })?;
            if has_image {
                self.files += files;
                kept.push(folder);
                continue;
            }
            let what = if folder.class.is_some() { ", so it is not a class" } else { "" };
            let problem = format!("there is no image in it{what}");
            let hint = "put images into it, or remove it";
            self.left_out.push(FormatError::content(root.join(&folder.folder), problem).hint(hint));
        }
        self.folders = kept;
        Ok(())
    }
}
