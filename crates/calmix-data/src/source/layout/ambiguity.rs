//! Folders with two possible readings: an error that lists the readings, or a warning with the chosen one.

use std::collections::BTreeSet;
use std::path::Path;

use calmix_formats::error::FormatProblem;
use calmix_formats::listing::image_kind::{contains_image, has_image_extension};
use calmix_formats::listing::{Contents, below, contents};

use super::{ClassFolders, TRAIN, UNLABELLED, split};
use crate::data_warning::DataWarning;
use crate::error::DataError;

impl ClassFolders {
    /// Returns whether the folders of the root are splits.
    pub(super) fn has_splits(&mut self, root: &Path, top: &Contents) -> Result<bool, DataError> {
        let ask = |what: String, readings: [String; 2]| {
            let problem = FormatProblem::Ambiguous { what, readings: readings.into() };
            Err(DataError::new(root, problem))
        };
        let is_split = |folder: &&String| split(folder).is_some_and(|split| split != UNLABELLED);
        let (splits, beside): (Vec<&String>, Vec<&String>) =
            top.folders.iter().filter(|folder| split(folder) != Some(UNLABELLED)).partition(is_split);
        let mut others = Vec::with_capacity(beside.len());
        for folder in beside {
            if splits.is_empty() || contains_image(root, folder)? {
                others.push(folder);
            }
        }
        let as_class = "--layout classes";
        if others.is_empty() && splits.iter().any(|folder| split(folder) == Some(TRAIN)) {
            return Ok(true);
        }
        if let (Some(first), true) = (splits.first(), others.is_empty()) {
            let train = root.join(TRAIN);
            return ask(
                format!("there is {}, but no training images", quoted(&splits)),
                [
                    format!("to train, put the class folders into {}", train.display()),
                    format!("if `{first}` is a class, use {as_class}"),
                ],
            );
        }
        let mut with_folders = Vec::new();
        for folder in splits {
            if contents(root, folder)?.folders.is_empty() {
                self.warnings.push(DataWarning::SplitAsClass { name: folder.clone() });
            } else {
                with_folders.push(folder);
            }
        }
        if let Some(first) = with_folders.first() {
            let what = format!(
                "`{first}` is named like a split and contains folders, but is next to {}",
                listed(&others)
            );
            let has_train = with_folders.iter().any(|folder| split(folder) == Some(TRAIN));
            let rest = if has_train {
                "the folders next to it should be left out"
            } else {
                "the folders next to it are classes"
            };
            return ask(
                what,
                [
                    format!("if `{first}` is a split and {rest}, use --layout splits"),
                    format!("if `{first}` is a class like the others, use {as_class}"),
                ],
            );
        }
        if others.len() > 1 && others.iter().all(|name| looks_like_split(name)) {
            return ask(
                format!("the folders look like splits rather than classes: {}", listed(&others)),
                [
                    "if they are splits, rename them to train, val, test or unlabelled".to_owned(),
                    format!("if they are classes, use {as_class}"),
                ],
            );
        }
        Ok(false)
    }

    /// Refuses a single class that contains only folders: its folder level may be superfluous.
    pub(super) fn check_single_class(&self, root: &Path, has_splits: bool) -> Result<(), DataError> {
        let classes = self.classes();
        let [class] = classes.as_slice() else { return Ok(()) };
        let Some(train) = self.folders.iter().find(|folder| folder.class.is_some()) else { return Ok(()) };
        let mut folder = train.folder.clone();
        let inner = loop {
            match inner_folders(root, &folder)? {
                Some(inner) if inner.len() == 1 => folder = below(&folder, &inner[0]),
                Some(inner) => break inner,
                None => return Ok(()),
            }
        };
        let nested = if folder == train.folder {
            "use --layout nested".to_owned()
        } else {
            format!("pass {} instead of {}", root.join(&folder).display(), root.display())
        };
        let only = if has_splits { "--layout splits" } else { "--layout classes" };
        let inner: Vec<&String> = inner.iter().collect();
        let what = format!(
            "all images are below the single folder `{class}`, which contains the folders {}",
            listed(&inner)
        );
        let readings = vec![
            format!("if these are the classes, {nested}"),
            format!("if `{class}` is the only class, use {only}"),
        ];
        Err(DataError::new(root, FormatProblem::Ambiguous { what, readings }))
    }

    /// Refuses several classes that contain only folders with different names, because they may be groups of classes. A
    /// group may have one class, but if each contains a single folder, that is more likely the folder of the class's images.
    pub(super) fn check_class_groups(&self, root: &Path, has_splits: bool) -> Result<(), DataError> {
        let mut groups = Vec::new();
        let mut names = BTreeSet::new();
        for folder in self.folders.iter().filter(|folder| folder.subset == TRAIN) {
            let Some(inner) = inner_folders(root, &folder.folder)? else { return Ok(()) };
            groups.extend(folder.class.clone());
            if !inner.into_iter().all(|name| names.insert(name)) {
                return Ok(());
            }
        }
        if groups.len() < 2 || names.len() == groups.len() {
            return Ok(());
        }
        let above: Vec<&String> = groups.iter().collect();
        let inside: Vec<&String> = names.iter().collect();
        let what = format!("the images of {} are in inner folders: {}", listed(&above), listed(&inside));
        let as_they_are = if has_splits { "--layout splits" } else { "--layout classes" };
        let readings = vec![
            "if the inner folders are the classes, use --layout nested".to_owned(),
            format!("if {} are the classes, use {as_they_are}", listed(&above)),
            "if they are, and the inner folders are patients, videos or sites, use --groups 2".to_owned(),
        ];
        Err(DataError::new(root, FormatProblem::Ambiguous { what, readings }))
    }
}

/// Lists the folders in a folder without images of its own; `None` if it contains images, or no folders.
fn inner_folders(root: &Path, folder: &str) -> Result<Option<Vec<String>>, DataError> {
    let inside = contents(root, folder)?;
    let is_image = |file: &String| has_image_extension(file);
    Ok(Some(inside.folders).filter(|folders| !folders.is_empty() && !inside.files.iter().any(is_image)))
}

/// Returns whether a name resembles that of a split without being recognised: `train_images`, `Testset`.
fn looks_like_split(name: &str) -> bool {
    const WORDS: [&str; 5] = ["eval", "evaluation", "holdout", "dev", "unlabelled"];
    const ENDINGS: [&str; 6] = ["set", "sets", "data", "images", "imgs", "split"];
    let name = name.to_lowercase();
    let is_split = |word: &str| {
        let stem = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
        split(stem).is_some() || WORDS.contains(&stem)
    };
    name.split(|c: char| !c.is_alphanumeric()).any(is_split)
}

/// The maximum number of names in a message.
const MAX_LISTED: usize = 6;

fn listed(names: &[&String]) -> String {
    let more = if names.len() > MAX_LISTED { ", …" } else { "" };
    names.iter().take(MAX_LISTED).map(|name| name.as_str()).collect::<Vec<_>>().join(", ") + more
}

fn quoted(names: &[&String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
