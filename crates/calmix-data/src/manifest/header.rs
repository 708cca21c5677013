//! Everything about a prepared dataset but its records, as `manifest.json` holds it.

use calmix_formats::element_type::ElementType;
use calmix_io::class_names;
use serde::{Deserialize, Serialize};

use super::pixel_layout::PixelLayout;

/// The format that this version writes and reads.
pub const VERSION: u32 = 2;

/// The greatest number of subsets.
pub const MAX_SUBSETS: usize = 64;

/// How the bytes of a sample encode an image or a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encoding {
    /// A JPEG, PNG or WebP file, detected by its first bytes.
    File,
    /// Raw bytes of a fixed size.
    Raw {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// How they are laid out.
        layout: PixelLayout,
    },
    /// Vectors instead of images.
    Vectors {
        /// Numbers of a vector.
        width: u32,
        /// Vectors of a sample: several views of it, usually one.
        views: u32,
        /// How a number is stored.
        #[serde(rename = "number")]
        element_type: ElementType,
    },
}

/// Everything about a dataset but its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of this format.
    pub version: u32,
    /// The classes, by name, in ascending order of the name; a dataset with official numbers keeps its order.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// Contiguous ranges of ids that belong together: train, test, extra, unlabelled.
    pub subsets: Vec<Subset>,
    /// How many samples there are.
    pub samples: u64,
    /// How many files hold them.
    pub parts: u32,
    /// How samples are stored.
    pub encoding: Encoding,
    /// The images that were shrunk; `None` if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<ShrunkImages>,
    /// Where the first vector of each part begins; empty for images. Names of samples need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<u64>,
    /// How many groups there are, besides samples without one; `None` if there are no groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// BLAKE3 over classes, subsets, groups and the content and label of every sample, in hexadecimal.
    pub fingerprint: String,
    /// Hashes of the tables. Checking the fingerprint needs all files of the dataset; these hashes detect a changed table,
    /// such as a flipped label, without them.
    pub tables: TableHashes,
}

/// BLAKE3 of the tables of a prepared dataset, in hexadecimal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableHashes {
    /// Of `samples.bin`.
    pub samples: String,
    /// Of `parts.bin`.
    pub parts: String,
    /// Of `names.bin`.
    pub names: String,
    /// Of the content and label of every sample, from which the fingerprint is computed; empty in tables of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Of `groups.bin`; empty if there are no groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub groups: String,
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
    /// How many samples it has.
    pub count: u64,
}
