//! The format of a dataset's files, and the options for reading them.

use calmix_formats::labels::columns::LabelColumns;
use serde::{Deserialize, Serialize};

use super::layout::FolderLayout;
use super::{idx, labels_csv};
use crate::shrink::DEFAULT_SIDE;

/// The format of a dataset's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SourceSpec {
    /// CIFAR-10, binary version.
    Cifar10,
    /// CIFAR-100, binary version.
    Cifar100 {
        /// The labels that give the classes.
        labels: Cifar100Labels,
    },
    /// IDX files: MNIST, Fashion-MNIST.
    Idx {
        /// The dataset, which determines the class names.
        classes: idx::Classes,
    },
    /// SVHN, cropped digits in `.mat` files.
    Svhn {
        /// Whether `extra_32x32.mat` is read as well.
        extra: bool,
    },
    /// STL-10, binary version, with its unlabelled images.
    Stl10,
    /// A folder per class, and one for unlabelled images.
    Folder {
        /// The roles of the folders: splits or classes.
        layout: FolderLayout,
        /// The shorter side to which larger images are [shrunk](crate::shrink); 0 to keep their size.
        #[serde(default)]
        shrink: u32,
        /// The level of folders that names the group of an image; 0 for none.
        #[serde(default, skip_serializing_if = "is_zero")]
        groups: u32,
    },
    /// A folder of images with `labels.csv` or `metadata.csv`.
    LabelsCsv {
        /// The treatment of images that no row names.
        unlisted: labels_csv::Unlisted,
        /// The columns to read.
        #[serde(default)]
        columns: LabelColumns,
        /// The shorter side to which larger images are shrunk, as for a folder; 0 to keep their size.
        #[serde(default)]
        shrink: u32,
    },
    /// A folder of images without labels.
    Images {
        /// The shorter side to which larger images are shrunk, as for a folder; 0 to keep their size.
        shrink: u32,
    },
    /// Tar shards of the WebDataset convention.
    Webdataset {
        /// Whether an image without a class is an unlabelled one; otherwise it is an error.
        unlabelled: bool,
    },
    /// Images in Parquet files, as on the Hugging Face Hub.
    Parquet {
        /// The columns to read.
        #[serde(default)]
        columns: LabelColumns,
    },
    /// ImageNet in its folder layout.
    Imagenet,
    /// WebVision with its file lists.
    Webvision,
    /// Vectors instead of images: a file of them, or a folder of such files.
    Vectors {
        /// The file of labels, a CSV or an `.npy`, relative to the current folder; `None` for labels in the vectors' own
        /// file.
        #[serde(default)]
        labels: Option<String>,
        /// Further sets of features of the same samples, files or folders relative to the current folder.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        more_features: Vec<String>,
        /// The column, array or tensor of vectors; `None` for one with a usual name.
        #[serde(default)]
        vector_column: Option<String>,
        /// The columns that hold ids and labels.
        #[serde(default)]
        columns: LabelColumns,
    },
}

/// The kind of CIFAR-100 label that gives the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cifar100Labels {
    /// One of 100 classes.
    Fine,
    /// One of 20 superclasses.
    Coarse,
}

impl SourceSpec {
    /// Returns whether a dataset prepared as `other` satisfies this specification: options left at their default here may
    /// have any value there.
    pub fn accepts(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Folder { layout, shrink, groups },
                Self::Folder { layout: other, shrink: side, groups: level },
            ) => {
                let same_layout = *layout == FolderLayout::Auto || layout == other;
                same_layout && accepts_side(*shrink, *side) && groups == level
            }
            (
                Self::LabelsCsv { unlisted, columns, shrink },
                Self::LabelsCsv { unlisted: other, columns: theirs, shrink: side },
            ) => unlisted == other && columns.accept(theirs) && accepts_side(*shrink, *side),
            (Self::Images { shrink }, Self::Images { shrink: side }) => accepts_side(*shrink, *side),
            (Self::Parquet { columns }, Self::Parquet { columns: theirs }) => columns.accept(theirs),
            (
                Self::Vectors { labels, more_features, vector_column, columns },
                Self::Vectors {
                    labels: other,
                    more_features: others,
                    vector_column: their_column,
                    columns: theirs,
                },
            ) => {
                let same_vectors = vector_column.is_none() || vector_column == their_column;
                labels == other && more_features == others && same_vectors && columns.accept(theirs)
            }
            _ => self == other,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field like this")]
fn is_zero(level: &u32) -> bool {
    *level == 0
}

/// Returns whether images shrunk to `other` satisfy a request for `side`. The default side accepts any.
fn accepts_side(side: u32, other: u32) -> bool {
    side == DEFAULT_SIDE || side == other
}
