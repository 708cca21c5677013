//! The level of folders that names the groups of images.

use std::path::Path;

use super::class_folder::{ClassFolder, FolderLayout};
use crate::error::DataError;

/// A level of folders, counted from 1 below the root without split folders; `unlabelled` has the level of a class.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct GroupLevel {
    level: usize,
    /// The level of the classes.
    class: usize,
}

impl GroupLevel {
    /// Makes the level `level`; `None` for 0.
    ///
    /// # Errors
    /// If it is the level of the classes.
    pub(in crate::source) fn new(
        level: u32,
        layout: FolderLayout,
        root: &Path,
    ) -> Result<Option<Self>, DataError> {
        let class = if layout == FolderLayout::Nested { 2 } else { 1 };
        let level = level as usize;
        if level != class {
            return Ok((level > 0).then_some(Self { level, class }));
        }
        let problem = format!("the folders at level {level} are the classes, so they cannot be the groups");
        let hint = if class == 1 {
            "for CLASS/GROUP/image.jpg set dataset.groups (`--groups`) to 2; for GROUP/CLASS/image.jpg set dataset.layout \
             (`--layout`) to nested"
        } else {
            "for GROUP/CLASS/image.jpg set dataset.groups (`--groups`) to 1"
        };
        Err(DataError::content(root, problem).hint(hint))
    }

    /// Returns the folder that names the group of a file, given by its path below the root; `None` if the file is not that
    /// deep.
    pub(in crate::source) fn group<'a>(self, file: &'a str, folder: &ClassFolder) -> Option<&'a str> {
        // `unlabelled` has the level of an ordinary class, even if classes are one level deeper.
        let own_level = if folder.class.is_some() { self.class } else { 1 };
        if folder.class.is_none() && self.level == own_level {
            return None;
        }
        let splits = folder.folder.split('/').count().saturating_sub(own_level);
        let (folders, _) = file.rsplit_once('/')?;
        folders.split('/').nth(splits + self.level - 1)
    }

    /// Returns whether the group folders are below the class folders.
    pub(super) fn is_inside_classes(self) -> bool {
        self.level > self.class
    }

    /// Returns the error for a level at which no image has a folder.
    pub(in crate::source) fn without_groups(self, root: &Path) -> DataError {
        let problem = format!("no image is in a folder at level {}, which names the groups", self.level);
        let hint = "count levels from the dataset folder, without train, val and test: in CLASS/GROUP/image.jpg the groups \
                    are at level 2; dataset.groups = 0 reads no groups";
        DataError::content(root, problem).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group<'a>(level: u32, layout: FolderLayout, folder: &str, file: &'a str) -> Option<&'a str> {
        let level = GroupLevel::new(level, layout, Path::new("root")).unwrap().unwrap();
        let class = folder.rsplit('/').next().filter(|name| *name != "unlabelled").map(str::to_owned);
        level.group(file, &ClassFolder { subset: "train", folder: folder.to_owned(), class })
    }

    #[test]
    fn level_counts_without_splits() {
        let auto = FolderLayout::Auto;
        assert_eq!(group(2, auto, "cat", "cat/p1/1.jpg"), Some("p1"));
        assert_eq!(group(2, auto, "train/cat", "train/cat/p1/1.jpg"), Some("p1"));
        assert_eq!(group(3, auto, "test/cat", "test/cat/site/p1/deep/1.jpg"), Some("p1"));
        assert_eq!(group(2, auto, "unlabelled", "unlabelled/p1/1.jpg"), Some("p1"));
        assert_eq!(group(2, auto, "train/unlabelled", "train/unlabelled/p1/1.jpg"), Some("p1"));
        assert_eq!(group(2, auto, "cat", "cat/1.jpg"), None);
        let nested = FolderLayout::Nested;
        assert_eq!(group(1, nested, "p1/cat", "p1/cat/1.jpg"), Some("p1"));
        assert_eq!(group(1, nested, "train/p1/cat", "train/p1/cat/1.jpg"), Some("p1"));
        assert_eq!(group(3, nested, "animals/cat", "animals/cat/p1/1.jpg"), Some("p1"));
        assert_eq!(group(1, nested, "unlabelled", "unlabelled/p1/1.jpg"), None);
    }

    #[test]
    fn level_of_classes_is_refused() {
        for (level, layout) in [(1, FolderLayout::Auto), (1, FolderLayout::Splits), (2, FolderLayout::Nested)]
        {
            GroupLevel::new(level, layout, Path::new("root")).unwrap_err();
        }
        assert!(GroupLevel::new(0, FolderLayout::Auto, Path::new("root")).unwrap().is_none());
    }
}
