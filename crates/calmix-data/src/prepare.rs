//! From files as they are published to a [prepared dataset](crate::manifest), with a report of what was found.

mod duplicates;
mod report;
mod warning;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use report::{ClassCount, Report, SubsetReport};
pub use warning::DataWarning;

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::manifest::Header;
use crate::source::{
    Count, Inspection, cifar, folder, idx, imagenet, labels_csv, stl10, svhn, webdataset, webvision,
};

/// The result of scanning a source.
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
        classes: idx::Classes,
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
    LabelsCsv {
        /// What becomes of images that no row names.
        unlisted: labels_csv::Unlisted,
    },
    /// Tar shards of the WebDataset convention.
    Webdataset {
        /// Whether an image without a class is an unlabelled one; otherwise it is an error.
        unlabelled: bool,
    },
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

/// Scans the files below `root` once, writes the prepared dataset to `target` and reports what was found.
///
/// # Errors
/// If the files are not what `source` says, or nothing can be written to `target`. Single images that cannot be
/// read are left out and reported instead.
pub fn prepare(source: &SourceSpec, root: &Path, target: &Path) -> Result<Report, DataError> {
    let prepared = scan(source, root, target)?;
    Report::new(&Dataset::open(target, root)?, prepared.unreadable)
}

fn scan(source: &SourceSpec, root: &Path, target: &Path) -> Result<Prepared, DataError> {
    let inspection = Inspection::default();
    let official = Count::Official;
    match source {
        SourceSpec::Cifar10 => cifar::prepare(root, target, cifar::Variant::Cifar10, official),
        SourceSpec::Cifar100 { labels } => {
            let variant = match labels {
                Cifar100Labels::Fine => cifar::Variant::Cifar100Fine,
                Cifar100Labels::Coarse => cifar::Variant::Cifar100Coarse,
            };
            cifar::prepare(root, target, variant, official)
        }
        SourceSpec::Idx { classes } => idx::prepare(root, target, *classes),
        SourceSpec::Svhn { extra } => svhn::prepare(root, target, *extra),
        SourceSpec::Stl10 => stl10::prepare(root, target, official),
        SourceSpec::Folder => folder::prepare(root, target, &inspection),
        SourceSpec::LabelsCsv { unlisted } => labels_csv::prepare(
            root,
            target,
            &labels_csv::LabelsCsvOptions { inspection, unlisted: *unlisted },
        ),
        SourceSpec::Webdataset { unlabelled } => {
            let options =
                webdataset::WebdatasetOptions { inspection, classes: None, unlabelled: *unlabelled };
            webdataset::prepare(root, target, &options)
        }
        SourceSpec::Imagenet => imagenet::prepare(root, target, &imagenet::ImagenetOptions::default()),
        SourceSpec::Webvision => webvision::prepare(root, target, &inspection),
    }
}
