//! Probable mistakes in a dataset, found before they cost a run.

use std::fmt::{self, Display, Formatter};

use calmix_io::shown::shown;

use super::duplicates::EXAMPLES;

/// Something that is allowed and probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataWarning {
    /// Classes with one or two images in a subset that has labels; a class with none is among them.
    FewImages {
        /// The subset.
        subset: String,
        /// How many such classes there are.
        classes: u64,
        /// The first of them, with how many images they have.
        examples: Vec<(String, u64)>,
    },
    /// Names of classes that differ only by case or by the space around them.
    AlikeNames {
        /// All of them.
        names: Vec<String>,
    },
    /// Images without a label in a subset where others have one.
    SomeUnlabelled {
        /// The subset.
        subset: String,
        /// Images without.
        without: u64,
        /// Images with.
        with: u64,
    },
    /// Images with the same content in two subsets.
    SameInTwoSubsets {
        /// How many different contents.
        contents: u64,
        /// The first of them, as two names each.
        examples: Vec<(String, String)>,
    },
    /// Images with the same content under two labels.
    SameUnderTwoLabels {
        /// How many different contents.
        contents: u64,
        /// The first of them, as two names each.
        examples: Vec<(String, String)>,
    },
    /// The dataset was too large to look for the same content twice.
    DuplicatesNotSought {
        /// How many samples it has.
        samples: u64,
        /// How many are searched at most.
        limit: u64,
    },
    /// Classes are named, but no image has a label.
    NoLabels,
    /// One class: every prediction is right.
    OneClass {
        /// Its name.
        name: String,
    },
    /// A class with many times the labelled images of another one.
    Uneven {
        /// The subset.
        subset: String,
        /// The class with the most images, and how many.
        most: (String, u64),
        /// The class with the fewest, and how many.
        least: (String, u64),
    },
    /// A folder that is called like a split, and has images in it instead of classes.
    SplitAsClass {
        /// Its name.
        name: String,
    },
    /// Several folders that are called like the same split.
    SplitTwice {
        /// The split.
        subset: String,
        /// The folders.
        folders: Vec<String>,
    },
}

impl Display for DataWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewImages { subset, classes, examples } => {
                let named = list(
                    examples.iter().map(|(class, images)| format!("`{}` {images}", shown(class))),
                    *classes,
                );
                let have = if *classes == 1 { "class has" } else { "classes have" };
                write!(f, "{classes} {have} fewer than 3 images in {subset}: {named}")
            }
            Self::AlikeNames { names } => {
                let named = list(names.iter().map(|name| format!("`{}`", shown(name))), names.len() as u64);
                write!(f, "classes whose names differ only by case or space: {named}")
            }
            Self::SomeUnlabelled { subset, without, with } => {
                write!(f, "{without} images of {subset} have no label, {with} have one")
            }
            Self::SameInTwoSubsets { contents, examples } => {
                let are = if *contents == 1 { "image is" } else { "images are" };
                write!(f, "{contents} {are} in two subsets: {}", pairs(examples, *contents))
            }
            Self::SameUnderTwoLabels { contents, examples } => {
                let have = if *contents == 1 { "image has" } else { "images have" };
                write!(f, "{contents} {have} two labels: {}", pairs(examples, *contents))
            }
            Self::DuplicatesNotSought { samples, limit } => {
                write!(f, "calmix did not look for duplicate images: {samples} samples are more than {limit}")
            }
            Self::NoLabels => write!(f, "there are classes, but no image has a label"),
            Self::OneClass { name } => {
                write!(f, "there is one class, `{}`: training needs at least two", shown(name))
            }
            Self::Uneven { subset, most, least } => {
                let [(most, many), (least, few)] = [most, least].map(|(class, count)| (shown(class), count));
                write!(f, "{subset} is uneven: {many} images of `{most}`, {few} of `{least}`; ")?;
                write!(f, "add images of the rare classes, and look at class_accuracy in the run's events")
            }
            Self::SplitAsClass { name } => {
                write!(f, "`{}` has no folders of classes in it and is taken for a class", shown(name))
            }
            Self::SplitTwice { subset, folders } => {
                write!(f, "{} are read together as {subset}", names(folders))
            }
        }
    }
}

fn pairs(examples: &[(String, String)], of: u64) -> String {
    list(examples.iter().map(|(a, b)| format!("{} = {}", shown(a), shown(b))), of)
}

fn names(all: &[String]) -> String {
    list(all.iter().take(EXAMPLES).map(shown), all.len() as u64)
}

fn list(examples: impl Iterator<Item = String>, of: u64) -> String {
    let examples: Vec<String> = examples.collect();
    let more = if of > examples.len() as u64 { ", …" } else { "" };
    examples.join(", ") + more
}
