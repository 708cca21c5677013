//! From files as they are published to a [prepared dataset](crate::manifest), with a summary of what was found.

mod duplicates;
mod findings;
mod labelled_groups;
mod prepare_table;
mod progress;
mod report;
mod source_stamp;
mod warning;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_cloud::CloudUrl;
use calmix_io::atomic_file::rename_folder;
use calmix_io::scratch_folder::ScratchFolder;
use serde::{Deserialize, Serialize};

pub use duplicates::copies_of;
pub use findings::Findings;
pub use prepare_table::prepare_table;
pub use progress::PrepareProgress;
pub use report::{ClassCount, Report, SubsetReport};
pub use source_stamp::{SourceStamp, Stale};
pub use warning::DataWarning;

use crate::dataset::Dataset;
use crate::error::{DataError, DataProblem};
use crate::manifest::Header;
use crate::shrink::DEFAULT_SIDE;
use crate::source::{
    Count, FolderLayout, Inspection, cifar, folder, idx, imagenet, labels_csv, parquet_images, stl10, svhn,
    vectors, webdataset, webvision,
};
use crate::vectors::VectorOptions;

/// The prefix of the scratch folder in which a dataset is being prepared.
pub const PREPARING: &str = ".preparing-";

/// The result of scanning a source.
#[derive(Debug)]
pub struct Prepared {
    /// What was written.
    pub header: Header,
    /// The files that could not be read and were left out.
    pub unreadable: Vec<DataError>,
    /// Probable mistakes that only the source can detect.
    pub warnings: Vec<DataWarning>,
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
        /// Which dataset: it decides the class names.
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
    Folder {
        /// Which folders are splits and which are classes.
        layout: FolderLayout,
        /// The shorter side to which larger images are [shrunk](crate::shrink); 0 for none.
        #[serde(default)]
        shrink: u32,
        /// The level of folders that names the group of an image; 0 for none.
        #[serde(default, skip_serializing_if = "is_zero")]
        groups: u32,
    },
    /// A folder of images with `labels.csv` or `metadata.csv`.
    LabelsCsv {
        /// What to do with images that no row names.
        unlisted: labels_csv::Unlisted,
        /// Which columns are read.
        #[serde(default)]
        columns: labels_csv::LabelColumns,
        /// The shorter side to which larger images are shrunk, as for a folder; 0 for none.
        #[serde(default)]
        shrink: u32,
    },
    /// Tar shards of the WebDataset convention.
    Webdataset {
        /// Whether an image without a class is an unlabelled one; otherwise it is an error.
        unlabelled: bool,
    },
    /// Images in Parquet files, as on the Hub of Hugging Face.
    Parquet {
        /// Which columns are read.
        #[serde(default)]
        columns: labels_csv::LabelColumns,
    },
    /// ImageNet in its folder layout.
    Imagenet,
    /// WebVision with its file lists.
    Webvision,
    /// Vectors instead of images: a file of them, or a folder of such files.
    Vectors {
        /// The file of their labels, a CSV or an `.npy`, from the current folder; `None` for labels in the vectors' own file.
        #[serde(default)]
        labels: Option<String>,
        /// The column, array or tensor that holds the vectors; `None` for one of a usual name.
        #[serde(default)]
        vector_column: Option<String>,
        /// The columns that hold ids and labels.
        #[serde(default)]
        columns: labels_csv::LabelColumns,
    },
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

impl SourceSpec {
    /// Whether a dataset prepared as `other` satisfies this specification: options left at their default here may have any
    /// value there.
    pub fn accepts(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Folder { layout, shrink, groups },
                Self::Folder { layout: other, shrink: side, groups: level },
            ) => {
                let same_layout = *layout == FolderLayout::Auto || layout == other;
                same_layout && shrinks_alike(*shrink, *side) && groups == level
            }
            (
                Self::LabelsCsv { unlisted, columns, shrink },
                Self::LabelsCsv { unlisted: other, columns: theirs, shrink: side },
            ) => unlisted == other && columns.accept(theirs) && shrinks_alike(*shrink, *side),
            (Self::Parquet { columns }, Self::Parquet { columns: theirs }) => columns.accept(theirs),
            (
                Self::Vectors { labels, vector_column, columns },
                Self::Vectors { labels: other, vector_column: their_column, columns: theirs },
            ) => {
                let same_vectors = vector_column.is_none() || vector_column == their_column;
                labels == other && same_vectors && columns.accept(theirs)
            }
            _ => self == other,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field like this")]
fn is_zero(level: &u32) -> bool {
    *level == 0
}

/// Whether images shrunk to `other` satisfy a request for `side`. The default side accepts any.
fn shrinks_alike(side: u32, other: u32) -> bool {
    side == DEFAULT_SIDE || side == other
}

/// Scans the files below `root` once, writes the prepared dataset and its summary to `target`, and returns the summary.
///
/// # Errors
/// If the files do not match `source`, or nothing can be written to `target`. Single images that cannot be
/// read are left out and listed in the summary instead.
pub fn prepare(source: &SourceSpec, root: &Path, target: &Path) -> Result<Report, DataError> {
    prepare_watched(source, root, target, None, Arc::default())
}

/// Prepares as [`prepare`] does, and counts the files read in `progress`. With a folder for `scans`, a preparation of shards
/// that was killed continues with those that it has not read.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_watched(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    scans: Option<PathBuf>,
    progress: Arc<PrepareProgress>,
) -> Result<Report, DataError> {
    if target.exists() {
        let problem = DataProblem::Content("this path already exists".into());
        return Err(DataError::new(target, problem).hint("choose another folder, or remove this one"));
    }
    if CloudUrl::is_in(root) && !matches!(source, SourceSpec::Webdataset { .. }) {
        let problem =
            DataProblem::Content("only WebDataset's shards (.tar) are read from object storage".into());
        let hint = "pack the images into shards, or copy the dataset to a local folder";
        return Err(DataError::new(root, problem).hint(hint));
    }
    // Taken before the files are read, so that a change during the scan is noticed later.
    let stamp = SourceStamp::take(source, root)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = ScratchFolder::new(parent, PREPARING)?;
    let made = scratch.path().join("prepared");
    let prepared = scan(source, root, &made, scans, progress)?;
    let mut report = Report::new(&Dataset::open(&made, root)?, prepared.unreadable)?;
    report.warnings.splice(0..0, prepared.warnings);
    findings::write_json(&made.join(Findings::FILE), &report)?;
    stamp.write(&made)?;
    rename_folder(&made, target).map_err(|error| DataError::new(target, error))?;
    Ok(report)
}

fn scan(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    scans: Option<PathBuf>,
    progress: Arc<PrepareProgress>,
) -> Result<Prepared, DataError> {
    let inspection = Inspection { progress: Some(progress), scans, ..Inspection::default() };
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
        SourceSpec::Folder { layout, shrink, groups } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            let options = folder::FolderOptions { inspection, layout: *layout, groups: *groups };
            folder::prepare(root, target, &options)
        }
        SourceSpec::LabelsCsv { unlisted, columns, shrink } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            let options =
                labels_csv::LabelsCsvOptions { inspection, unlisted: *unlisted, columns: columns.clone() };
            labels_csv::prepare(root, target, &options)
        }
        SourceSpec::Webdataset { unlabelled } => {
            let options =
                webdataset::WebdatasetOptions { inspection, classes: None, unlabelled: *unlabelled };
            webdataset::prepare(root, target, &options)
        }
        SourceSpec::Parquet { columns } => {
            let options = parquet_images::ParquetOptions { inspection, columns: columns.clone() };
            parquet_images::prepare(root, target, &options)
        }
        SourceSpec::Imagenet => {
            let options = imagenet::ImagenetOptions { inspection, ..imagenet::ImagenetOptions::default() };
            imagenet::prepare(root, target, &options)
        }
        SourceSpec::Webvision => webvision::prepare(root, target, &inspection),
        SourceSpec::Vectors { labels, vector_column, columns } => {
            let options = VectorOptions { vector_column: vector_column.clone(), columns: columns.clone() };
            vectors::prepare(
                root,
                target,
                labels.as_deref().map(Path::new),
                &options,
                inspection.progress.as_deref(),
            )
        }
    }
}
