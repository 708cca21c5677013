//! The summary of a prepared dataset that `calmix prepare` prints and stores.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use calmix_io::shown::shown;
use calmix_io::text::counted;
use serde::{Serialize, Serializer};

use super::duplicates;
use super::labelled_groups::LabelledGroups;
use crate::data_warning::{DataWarning, MAX_EXAMPLES};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::manifest::{Encoding, ShrunkImages};

/// The maximum number of unreadable files that the summary prints.
const MAX_PRINTED: usize = 20;

/// The maximum number of unreadable files stored with their reasons. Further ones are only counted, which bounds the size of
/// the file.
const MAX_LISTED: usize = 1_000;

/// The minimum ratio of class sizes for which classes count as imbalanced.
const MIN_IMBALANCE: u64 = 10;

/// Counts, classes, unreadable files and probable mistakes. In JSON, the latter two are lists of sentences.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The fingerprint of the dataset, in hexadecimal.
    pub fingerprint: String,
    /// The subsets in the order of their ids.
    pub subsets: Vec<SubsetReport>,
    /// The classes in the order of their labels.
    pub classes: Vec<ClassCount>,
    /// The images that were shrunk; `None` if none were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<ShrunkImages>,
    /// Whether the samples are vectors instead of images.
    #[serde(skip)]
    pub is_of_vectors: bool,
    /// The number of files and folders that could not be read and were left out.
    pub left_out: u64,
    /// The first thousand of these, with the reasons.
    #[serde(serialize_with = "sentences")]
    pub unreadable: Vec<DataError>,
    /// Probable mistakes.
    #[serde(serialize_with = "sentences")]
    pub warnings: Vec<DataWarning>,
}

/// Counts of a subset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubsetReport {
    pub name: String,
    /// Samples with a label.
    pub labelled: u64,
    /// Samples without a label.
    pub unlabelled: u64,
    /// Groups of the labelled samples, counting each sample without a group as one; `None` if the dataset has no groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
}

/// A class and its number of labelled samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    pub name: String,
    /// Labelled samples in all subsets together.
    pub labelled: u64,
    /// Labelled samples by subset; only subsets with labels.
    pub subsets: BTreeMap<String, u64>,
}

impl Report {
    /// Counts the samples of `dataset` and searches it for duplicates.
    pub fn new(dataset: &Dataset, mut unreadable: Vec<DataError>) -> Result<Self, DataError> {
        let mut report = Self::of_table(dataset)?;
        report.warnings.extend(duplicates::find(dataset)?);
        let left_out = unreadable.len() as u64;
        unreadable.truncate(MAX_LISTED);
        Ok(Self { left_out, unreadable, ..report })
    }

    /// Counts the samples in the table of `dataset` without reading its files, which may be missing.
    pub fn of_table(dataset: &Dataset) -> Result<Self, DataError> {
        let class = |name: &String| ClassCount { name: name.clone(), labelled: 0, subsets: BTreeMap::new() };
        let mut classes: Vec<ClassCount> = dataset.classes().iter().map(class).collect();
        let mut warnings = similar_names(dataset.classes());
        let mut subsets = Vec::new();
        let mut groups = LabelledGroups::default();
        for subset in &dataset.header().subsets {
            let mut counts = vec![0_u64; classes.len()];
            for record in dataset.records(dataset.subset(&subset.name)?) {
                let label = record?.1.class();
                if let Some(count) = label.and_then(|label| counts.get_mut(label as usize)) {
                    *count += 1;
                }
            }
            let labelled = counts.iter().sum();
            let name = subset.name.clone();
            let groups = groups.count(dataset, &subset.name)?;
            let counted = SubsetReport { name, labelled, unlabelled: subset.count - labelled, groups };
            warnings.extend(few_images(&counted, &classes, &counts));
            warnings.extend(imbalanced(&counted, &classes, &counts));
            warnings.extend(some_unlabelled(&counted));
            for (class, count) in classes.iter_mut().zip(counts).filter(|_| labelled > 0) {
                class.labelled += count;
                class.subsets.insert(subset.name.clone(), count);
            }
            subsets.push(counted);
        }
        warnings.extend(groups.in_two_subsets());
        if !classes.is_empty() && classes.iter().all(|class| class.labelled == 0) {
            warnings.push(DataWarning::NoLabels);
        }
        if let [class] = classes.as_slice() {
            warnings.push(DataWarning::OneClass { name: class.name.clone() });
        }
        let fingerprint = dataset.fingerprint().to_owned();
        let shrunk = dataset.header().shrunk;
        let is_of_vectors = matches!(dataset.header().encoding, Encoding::Vectors { .. });
        Ok(Self {
            fingerprint,
            subsets,
            classes,
            shrunk,
            is_of_vectors,
            left_out: 0,
            unreadable: Vec::new(),
            warnings,
        })
    }

    /// Returns the number of samples in all subsets, labelled or not.
    pub fn samples(&self) -> u64 {
        self.subsets.iter().map(|subset| subset.labelled + subset.unlabelled).sum()
    }

    /// Returns the number of unlabelled samples in all subsets.
    pub fn unlabelled(&self) -> u64 {
        self.subsets.iter().map(|subset| subset.unlabelled).sum()
    }

    /// Returns the smallest and the largest number of labelled samples per class in a subset; `None` if it has no labels.
    pub fn labelled_per_class(&self, subset: &str) -> Option<(u64, u64)> {
        let counts = || self.classes.iter().filter_map(|class| class.subsets.get(subset).copied());
        Some((counts().min()?, counts().max()?))
    }

    /// Returns the plural noun for the samples.
    pub fn samples_word(&self) -> &'static str {
        if self.is_of_vectors { "vectors" } else { "images" }
    }

    fn images_per_class(&self) -> String {
        let count = |subset: &SubsetReport| {
            let (least, most) = self.labelled_per_class(&subset.name)?;
            let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
            Some(format!("{} {range}", shown(&subset.name)))
        };
        let counts: Vec<String> = self.subsets.iter().filter_map(count).collect();
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let short: String = self.fingerprint.chars().take(12).collect();
        let count = |subset: &SubsetReport| {
            format!("{} {}", shown(&subset.name), subset.labelled + subset.unlabelled)
        };
        let subsets: Vec<String> = self.subsets.iter().map(count).collect();
        writeln!(f, "data: {short}")?;
        writeln!(f, "{} samples: {}", self.samples(), subsets.join(", "))?;
        let per_class = if self.classes.len() == 1 { "" } else { " per class" };
        let classes = counted(self.classes.len() as u64, "class");
        let samples = self.samples_word();
        write!(f, "{classes}, labelled {samples}{per_class}: {}", self.images_per_class())?;
        if self.unlabelled() > 0 {
            write!(f, "; {} unlabelled", self.unlabelled())?;
        }
        let in_groups = |subset: &SubsetReport| {
            let groups = subset.groups.filter(|_| subset.labelled > 0)?;
            let labels = counted(subset.labelled, "label");
            Some(format!("{} {labels} in {}", shown(&subset.name), counted(groups, "group")))
        };
        let in_groups: Vec<String> = self.subsets.iter().filter_map(in_groups).collect();
        if !in_groups.is_empty() {
            write!(f, "\ngroups: {}", in_groups.join(", "))?;
        }
        if let Some(ShrunkImages { side, count }) = self.shrunk {
            let images = counted(count, "large image");
            write!(f, "\n{images} shrunk to a shorter side of {side} pixels")?;
        }
        let left_out = self.left_out;
        if left_out > 0 {
            let were = if left_out == 1 { "file or folder was" } else { "files or folders were" };
            write!(f, "\n{left_out} {were} left out:")?;
            for error in self.unreadable.iter().take(MAX_PRINTED) {
                write!(f, "\n  {error}")?;
            }
            if left_out > MAX_PRINTED as u64 {
                write!(f, "\n  … and {} more", left_out - MAX_PRINTED as u64)?;
            }
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

fn sentences<S: Serializer>(of: &[impl Display], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(of.iter().map(ToString::to_string))
}

fn few_images(subset: &SubsetReport, classes: &[ClassCount], counts: &[u64]) -> Option<DataWarning> {
    let few = || classes.iter().zip(counts).filter(|(_, count)| **count < 3);
    if subset.labelled == 0 || few().next().is_none() {
        return None;
    }
    Some(DataWarning::FewImages {
        subset: subset.name.clone(),
        classes: few().count() as u64,
        examples: few().map(|(class, count)| (class.name.clone(), *count)).take(MAX_EXAMPLES).collect(),
    })
}

fn imbalanced(subset: &SubsetReport, classes: &[ClassCount], counts: &[u64]) -> Option<DataWarning> {
    let some = || classes.iter().zip(counts).filter(|(_, count)| **count > 0);
    let named = |(class, count): (&ClassCount, &u64)| (class.name.clone(), *count);
    let (most, least) = (some().max_by_key(|(_, count)| **count)?, some().min_by_key(|(_, count)| **count)?);
    let is_uneven = *most.1 >= least.1.saturating_mul(MIN_IMBALANCE);
    is_uneven.then(|| DataWarning::Uneven {
        subset: subset.name.clone(),
        most: named(most),
        least: named(least),
    })
}

fn some_unlabelled(subset: &SubsetReport) -> Option<DataWarning> {
    let &SubsetReport { labelled: with, unlabelled: without, .. } = subset;
    (with > 0 && without > 0).then(|| DataWarning::SomeUnlabelled {
        subset: subset.name.clone(),
        without,
        with,
    })
}

fn similar_names(classes: &[String]) -> Vec<DataWarning> {
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for class in classes {
        alike.entry(class.trim().to_lowercase()).or_default().push(class.clone());
    }
    alike
        .into_values()
        .filter(|names| names.len() > 1)
        .map(|names| DataWarning::SimilarNames { names })
        .collect()
}
