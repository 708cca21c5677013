//! Probable mistakes in a dataset, found before they cost a run.

use std::fmt::{self, Display, Formatter};

use calmix_core::shown::shown;

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
        /// The first of them, as two ids each.
        examples: Vec<(u64, u64)>,
    },
    /// Images with the same content under two labels.
    SameUnderTwoLabels {
        /// How many different contents.
        contents: u64,
        /// The first of them, as two ids each.
        examples: Vec<(u64, u64)>,
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
}

impl Display for DataWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewImages { subset, classes, examples } => {
                let named = list(
                    examples.iter().map(|(class, images)| format!("`{}` {images}", shown(class))),
                    *classes,
                );
                write!(f, "{classes} classes have fewer than 3 images in {subset}: {named}")
            }
            Self::AlikeNames { names } => {
                let named = list(names.iter().map(|name| format!("`{}`", shown(name))), names.len() as u64);
                write!(f, "classes whose names differ only by case or space: {named}")
            }
            Self::SomeUnlabelled { subset, without, with } => {
                write!(f, "{without} images of {subset} have no label, {with} have one")
            }
            Self::SameInTwoSubsets { contents, examples } => {
                let named = list(examples.iter().map(|(a, b)| format!("{a} = {b}")), *contents);
                write!(f, "{contents} images are in two subsets; samples {named}")
            }
            Self::SameUnderTwoLabels { contents, examples } => {
                let named = list(examples.iter().map(|(a, b)| format!("{a} = {b}")), *contents);
                write!(f, "{contents} images have two labels; samples {named}")
            }
            Self::DuplicatesNotSought { samples, limit } => {
                write!(f, "calmix did not look for duplicate images: {samples} samples are more than {limit}")
            }
            Self::NoLabels => write!(f, "there are classes, but no image has a label"),
        }
    }
}

fn list(examples: impl Iterator<Item = String>, of: u64) -> String {
    let examples: Vec<String> = examples.collect();
    let more = if of > examples.len() as u64 { ", …" } else { "" };
    examples.join(", ") + more
}
