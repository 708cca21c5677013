//! Probable mistakes in a dataset, reported before training starts.

use std::fmt::{self, Display, Formatter};

use calmix_io::shown::shown;

/// The maximum number of examples in a warning.
pub(crate) const MAX_EXAMPLES: usize = 5;

/// A property of a dataset that is allowed but probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataWarning {
    /// Classes with fewer than three samples in a subset that has labels, including classes without any.
    FewImages {
        subset: String,
        /// The number of such classes.
        classes: u64,
        /// The first few such classes, each with its number of samples.
        examples: Vec<(String, u64)>,
    },
    /// Names of classes that differ only by case or by the space around them.
    SimilarNames {
        /// The names, in label order.
        names: Vec<String>,
    },
    /// Samples without a label in a subset where others have one.
    SomeUnlabelled {
        subset: String,
        /// Samples without a label.
        without: u64,
        /// Samples with a label.
        with: u64,
    },
    /// Samples with the same content in two subsets.
    SameInTwoSubsets {
        /// The number of distinct samples with such copies.
        contents: u64,
        /// The first few, each as the names of two copies.
        examples: Vec<(String, String)>,
    },
    /// Groups with labelled samples in two subsets: testing on known groups is easier than testing on new ones.
    GroupsInTwoSubsets {
        groups: u64,
        /// The first two subsets that share a group.
        subsets: [String; 2],
    },
    /// Samples with the same content under two labels.
    SameUnderTwoLabels {
        /// The number of distinct samples with such copies.
        contents: u64,
        /// The first few, each as the names of two copies.
        examples: Vec<(String, String)>,
    },
    /// The dataset has too many samples to search it for duplicates.
    DuplicatesNotSearched {
        /// Samples of the dataset.
        samples: u64,
        /// The largest number of samples that calmix searches.
        limit: u64,
    },
    /// A class whose name other tools use for a missing label.
    MaybeMissing {
        name: String,
        /// The number of samples in that class.
        samples: u64,
    },
    /// Classes are named, but no sample has a label.
    NoLabels,
    /// The dataset has one class, so every prediction would be correct.
    OneClass { name: String },
    /// Class imbalance: one class has many times the labelled samples of another.
    Uneven {
        subset: String,
        /// The class with the most samples, and its count.
        most: (String, u64),
        /// The class with the fewest samples, and its count.
        least: (String, u64),
    },
    /// All-zero vectors, which usually stand for samples that failed.
    ZeroVectors {
        vectors: u64,
        /// The first of these samples.
        example: String,
    },
    /// Columns of the vectors that have the same value in all samples.
    ConstantColumns {
        columns: u64,
        /// The total number of columns, over all views.
        of: u64,
    },
    /// A folder that is named like a split but contains images instead of class folders.
    SplitAsClass { name: String },
    /// Several folders whose names mean the same split.
    SplitTwice {
        /// The split.
        subset: String,
        folders: Vec<String>,
    },
}

impl Display for DataWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewImages { subset, classes, examples } => {
                let named = list(
                    examples.iter().map(|(class, images)| format!("`{}` ({images})", shown(class))),
                    *classes,
                );
                let have = if *classes == 1 { "class has" } else { "classes have" };
                write!(f, "{classes} {have} fewer than 3 samples in {subset}: {named}")
            }
            Self::SimilarNames { names } => {
                let named = list(names.iter().map(|name| format!("`{}`", shown(name))), names.len() as u64);
                write!(f, "these class names differ only in case or in the spaces around them: {named}")
            }
            Self::SomeUnlabelled { subset, without, with } => {
                write!(f, "{without} samples in {subset} have no label; the other {with} have one")
            }
            Self::SameInTwoSubsets { contents, examples } => {
                let appear = if *contents == 1 { "sample appears" } else { "samples appear" };
                write!(f, "{contents} {appear} in two subsets: {}", pairs(examples, *contents))
            }
            Self::GroupsInTwoSubsets { groups, subsets: [first, second] } => {
                let have = if *groups == 1 { "group has" } else { "groups have" };
                let [first, second] = [first, second].map(shown);
                write!(
                    f,
                    "{groups} {have} labels in two subsets, such as {first} and {second}: metrics on one of them are better \
                     than on samples of new groups"
                )
            }
            Self::SameUnderTwoLabels { contents, examples } => {
                let appear = if *contents == 1 { "sample appears" } else { "samples appear" };
                write!(f, "{contents} {appear} under two labels: {}", pairs(examples, *contents))
            }
            Self::DuplicatesNotSearched { samples, limit } => {
                write!(
                    f,
                    "calmix did not search for duplicates: {samples} samples exceed the limit of {limit}"
                )
            }
            Self::MaybeMissing { name, samples } => {
                let have = if *samples == 1 { "sample has" } else { "samples have" };
                write!(
                    f,
                    "{samples} {have} the class `{}`; if it means that the label is missing, leave the label empty",
                    shown(name)
                )
            }
            Self::NoLabels => write!(f, "the dataset has classes, but no sample has a label"),
            Self::OneClass { name } => {
                write!(f, "there is only one class, `{}`: training needs at least two", shown(name))
            }
            Self::Uneven { subset, most, least } => {
                let [(most, many), (least, few)] = [most, least].map(|(class, count)| (shown(class), count));
                write!(
                    f,
                    "the classes of {subset} are imbalanced: {many} samples of `{most}`, {few} of `{least}`; "
                )?;
                write!(f, "add samples of the rare classes, and check class_accuracy in the run's events")
            }
            Self::ZeroVectors { vectors, example } => {
                let are = if *vectors == 1 { "vector is" } else { "vectors are" };
                write!(
                    f,
                    "{vectors} {are} all zeros, the first is {}; check how it was computed",
                    shown(example)
                )
            }
            Self::ConstantColumns { columns, of } => {
                let have = if *columns == 1 { "column has" } else { "columns have" };
                write!(
                    f,
                    "{columns} of {of} {have} the same number in all samples and cannot help to tell them apart"
                )
            }
            Self::SplitAsClass { name } => {
                write!(
                    f,
                    "`{}` is named like a split but contains no class folders, so it is read as a class",
                    shown(name)
                )
            }
            Self::SplitTwice { subset, folders } => {
                write!(f, "the folders {} are merged into the split {subset}", names(folders))
            }
        }
    }
}

fn pairs(examples: &[(String, String)], of: u64) -> String {
    list(examples.iter().map(|(a, b)| format!("{} = {}", shown(a), shown(b))), of)
}

fn names(all: &[String]) -> String {
    list(all.iter().take(MAX_EXAMPLES).map(shown), all.len() as u64)
}

fn list(examples: impl Iterator<Item = String>, of: u64) -> String {
    let examples: Vec<String> = examples.collect();
    let more = if of > examples.len() as u64 { ", …" } else { "" };
    examples.join(", ") + more
}
