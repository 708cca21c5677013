//! From files as they are published to a [prepared dataset](crate::manifest), with a report of what was found.

mod duplicates;
mod report;
mod warning;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use report::{ClassCount, Report, SubsetReport};
pub use warning::Warning;

use crate::dataset::Dataset;
use crate::error::{DataError, Problem};
use crate::manifest::Header;

/// What a source hands back when it has been scanned.
#[derive(Debug)]
pub struct Prepared {
    /// What was written.
    pub header: Header,
    /// The files that could not be read and were left out.
    pub unreadable: Vec<DataError>,
}

/// What kind of files a dataset comes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SourceSpec {
    /// CIFAR-10, binary version.
    Cifar10,
    /// CIFAR-100, binary version.
    Cifar100 {
        /// Which of its two labels is the class.
        labels: Cifar100Labels,
    },
    /// MNIST, Fashion-MNIST and their like.
    Idx {
        /// Whose names the classes have.
        classes: IdxClasses,
    },
    /// SVHN, cropped digits in `.mat` files.
    Svhn {
        /// Whether `extra_32x32.mat` is read as well.
        extra: bool,
    },
    /// STL-10, binary version, with its unlabelled images.
    Stl10,
    /// A folder for each class, and one for unlabelled images.
    Folder,
    /// A folder of images with `labels.csv` or `metadata.csv`.
    LabelsCsv,
    /// Tar shards of the WebDataset convention.
    Webdataset,
    /// ImageNet in its folder layout.
    Imagenet,
    /// WebVision with its file lists.
    Webvision,
}

/// Which label of CIFAR-100 is the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cifar100Labels {
    /// One of 100.
    Fine,
    /// One of 20.
    Coarse,
}

/// Whose names the classes of idx files have: the files hold numbers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdxClasses {
    /// The digits of MNIST, or any other numbers.
    Numbers,
    /// The garments of Fashion-MNIST.
    FashionMnist,
}

/// Scans the files below `root` once, writes the prepared dataset to `target` and reports what was found.
///
/// # Errors
/// If the files are not what `source` says, or nothing can be written to `target`. Single images that cannot be
/// read are left out and reported instead.
pub fn prepare(source: &SourceSpec, root: &Path, target: &Path) -> Result<Report, DataError> {
    let prepared = scan(source, root, target)?;
    Report::new(&Dataset::open(target, root)?, prepared.unreadable)
}

fn scan(source: &SourceSpec, root: &Path, _target: &Path) -> Result<Prepared, DataError> {
    // An arm for each source joins here with its reader.
    let problem = Problem::Content(format!("no reader for {source:?}"));
    Err(DataError::new(root, problem))
}
