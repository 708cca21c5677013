//! The metadata of a prepared dataset, stored in `manifest.json`.

use calmix_formats::element_type::ElementType;
use calmix_io::class_names;
use serde::{Deserialize, Serialize};

use super::pixel_layout::PixelLayout;

/// The format version that this version of calmix writes and reads.
pub const VERSION: u32 = 2;

/// The maximum number of subsets.
pub const MAX_SUBSETS: usize = 64;

/// The encoding of a sample's bytes: an image or a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encoding {
    /// A JPEG, PNG or WebP file, detected by its first bytes.
    File,
    /// Raw bytes of a fixed size.
    Raw {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
        /// The order of the pixels.
        layout: PixelLayout,
    },
    /// Vectors instead of images.
    Vectors {
        /// The length of a vector.
        width: u32,
        /// Vectors per sample: several views of it, usually one.
        views: u32,
        /// The type of the values.
        #[serde(rename = "number")]
        element_type: ElementType,
    },
}

/// The metadata of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of this format.
    pub version: u32,
    /// The class names in ascending order, or in the official order of a published dataset.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// Contiguous ranges of ids that belong together: train, test, extra, unlabelled.
    pub subsets: Vec<Subset>,
    /// The number of samples.
    pub samples: u64,
    /// The number of files that hold samples.
    pub parts: u32,
    /// The encoding of all samples.
    pub encoding: Encoding,
    /// The images that were shrunk; `None` if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<ShrunkImages>,
    /// The widths of the sets of features that a vector consists of; empty for one set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<u32>,
    /// The offset of the first vector in each part, which sample names need; empty for images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<u64>,
    /// The number of groups, not counting samples without one; `None` if there are no groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// BLAKE3 over classes, subsets, groups and the content and label of every sample, in hexadecimal.
    pub fingerprint: String,
    /// Hashes of the tables. Verifying the fingerprint needs all files of the dataset; these hashes detect a changed table,
    /// such as a flipped label, without them.
    pub tables: TableHashes,
}

/// BLAKE3 of the tables of a prepared dataset, in hexadecimal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableHashes {
    /// The hash of `samples.bin`.
    pub samples: String,
    /// The hash of `parts.bin`.
    pub parts: String,
    /// The hash of `names.bin`.
    pub names: String,
    /// The hash of the content and label of every sample, part of the fingerprint; empty in tables of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The hash of `groups.bin`; empty if there are no groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub groups: String,
    /// The hash of `drawn.bin`; empty if it is not known how any label was drawn.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drawn: String,
    /// The hash of `weights.bin`; empty if no label has a weight.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weights: String,
}

/// The images of a dataset that were [shrunk](crate::shrink).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShrunkImages {
    /// Pixels of their shorter side.
    pub side: u32,
    pub count: u64,
}

/// A contiguous range of ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subset {
    /// `train`, `test`, `extra`, `unlabelled`, `val`.
    pub name: String,
    /// Its first id.
    pub first: u64,
    /// The number of samples.
    pub count: u64,
}
