//! A dataset as one table: sample id → where its bytes are, their checksum, and its class.
//!
//! Every source, from CIFAR's binary files to shards of tar, is reduced to this table by
//! [`prepare`](crate::prepare); everything after it (splits, order, loading) uses only the table. Ids are dense:
//! sample n is row n. The table is a file of fixed records that is read in place, so a billion samples need no
//! more memory than a thousand.
//!
//! A prepared dataset is a folder:
//!
//! | file | what |
//! |---|---|
//! | `manifest.json` | the [`Header`]: format version, classes by name, subsets, how samples are stored, fingerprint, hashes of the tables |
//! | `samples.bin` | one [`SampleRecord`] of 24 bytes per sample, little-endian |
//! | `parts.bin`, `names.bin` | the files that hold samples: a record of 24 bytes each, and their names |
//! | `groups.bin` | the [group](crate::groups) of each sample, 4 bytes, little-endian, if there are groups |
//! | `shrunk.bin` | the pixels of images that were shrunk, if any were ([`shrink`](crate::shrink)) |
//! | other files | parts that had to be unpacked for random access (from zlib, gzip or Parquet) |

mod builder;
mod check;
mod fingerprint;
mod group_table;
mod pixel_layout;
mod prepared;
mod table_file;

use calmix_formats::element_type::ElementType;
use calmix_io::class_names;
use serde::{Deserialize, Serialize};

pub use builder::{ManifestBuilder, PREPARING, Unpacked};
pub(crate) use builder::{SampleDigest, vector_content};
pub use check::check_part_path;
pub(crate) use check::check_version;
pub(crate) use fingerprint::Fingerprint;
pub use prepared::Prepared;

/// Marks a sample without a label in [`SampleRecord::label`].
pub const NO_LABEL: u32 = u32::MAX;

/// The format that this version writes and reads.
pub const VERSION: u32 = 2;

/// Bytes of the largest sample: enough for any photo, too few to exhaust memory.
pub const MAX_SAMPLE: u32 = 256 << 20;

/// The file of the prepared folder that holds the images that were shrunk, one after the other.
pub const SHRUNK_FILE: &str = "shrunk.bin";

/// What the name of an unpacked part of vectors ends in, after the name of the file that the vectors come from.
pub(crate) const UNPACKED_VECTORS: &str = ".f32";

/// The file of the prepared folder that holds the groups.
pub(crate) const GROUPS_FILE: &str = "groups.bin";

/// The greatest number of subsets.
pub const MAX_SUBSETS: usize = 64;

/// Where one sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRecord {
    /// Which part holds its bytes.
    pub part: u32,
    /// Where they begin.
    pub offset: u64,
    /// How many there are.
    pub length: u32,
    /// CRC-32C of them.
    pub checksum: u32,
    /// Its class, an index into [`Header::classes`], or [`NO_LABEL`].
    pub label: u32,
}

impl SampleRecord {
    /// Bytes of a record in the table.
    pub const BYTES: usize = 24;

    /// Its class; `None` for an unlabelled sample.
    pub fn class(self) -> Option<u32> {
        (self.label != NO_LABEL).then_some(self.label)
    }

    /// Encodes the record for the table.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.part.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[20..].copy_from_slice(&self.label.to_le_bytes());
        bytes
    }

    /// Decodes a record of the table.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [o0, o1, o2, o3, o4, o5, o6, o7, rest @ ..] = bytes;
        let [p0, p1, p2, p3, n0, n1, n2, n3, c0, c1, c2, c3, l0, l1, l2, l3] = rest;
        Self {
            offset: u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            part: u32::from_le_bytes([p0, p1, p2, p3]),
            length: u32::from_le_bytes([n0, n1, n2, n3]),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
            label: u32::from_le_bytes([l0, l1, l2, l3]),
        }
    }
}

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
        number: ElementType,
    },
}

/// How raw pixels are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PixelLayout {
    /// One byte per pixel, row by row (idx).
    Grey,
    /// A red, a green and a blue plane, each row by row (CIFAR).
    Planes,
    /// A red, a green and a blue plane, each column by column (STL-10, SVHN).
    PlanesByColumn,
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
    /// How many there are.
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

/// Where the bytes of a part are, by its number in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// In the source.
    Source = 0,
    /// In the prepared folder.
    Unpacked = 1,
    /// In the prepared folder's [`SHRUNK_FILE`].
    Shrunk = 2,
}

/// A file that holds samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetPart {
    /// Its path, with `/`, relative to the root of the source or, if unpacked, to the prepared folder.
    pub path: String,
    /// Whether it lies in the prepared folder.
    pub unpacked: bool,
    /// Whether its image was shrunk: then its samples are in the prepared folder, in [`SHRUNK_FILE`].
    pub shrunk: bool,
    /// Its length in bytes when it was prepared.
    pub length: u64,
}
