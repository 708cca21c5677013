//! A dataset as one table: the location, checksum and class of every sample id.
//!
//! [`prepare`](crate::prepare) reduces every source, from CIFAR's binary files to tar shards, to this table; all later
//! stages (splits, order, loading) use only the table. Ids are dense: sample n is row n. The table is a file of fixed-size
//! records that is read in place, so a billion samples need no more memory than a thousand.
//!
//! A prepared dataset is a folder:
//!
//! | file | what |
//! |---|---|
//! | `manifest.json` | the [`Header`]: format version, classes by name, subsets, how samples are stored, fingerprint, hashes of the tables |
//! | `samples.bin` | one [`SampleRecord`] of 24 bytes per sample, little-endian |
//! | `parts.bin`, `names.bin` | the files that hold samples: a record of 24 bytes each, and their names |
//! | `groups.bin` | the [group](crate::groups) of each sample, 4 bytes, little-endian, if there are groups |
//! | `drawn.bin` | how the label of each sample was [drawn](calmix_formats::labels::drawn), a byte, if this is known of any |
//! | `weights.bin` | the weight of the label of each sample in training, `f64`, little-endian, if one is not 1 |
//! | `shrunk.bin` | the pixels of images that were shrunk, if any were ([`shrink`](crate::shrink)) |
//! | other files | parts that had to be unpacked for random access (from zlib, gzip or Parquet) |

mod builder;
mod check;
mod fingerprint;
mod header;
mod pixel_layout;
mod table_file;
mod tables;

pub use builder::{ManifestBuilder, PREPARING, Prepared, Unpacked};
pub(crate) use builder::{SampleDigest, parent_of, scratch_beside, vector_content};
pub use check::check_part_path;
pub(crate) use check::check_version;
pub(crate) use fingerprint::Fingerprint;
pub use header::{Encoding, Header, MAX_SUBSETS, ShrunkImages, Subset, TableHashes, VERSION};
pub use pixel_layout::PixelLayout;
pub(crate) use tables::{DRAWN_FILE, GROUPS_FILE, PartKind, UNPACKED_VECTORS, WEIGHTS_FILE};
pub use tables::{DatasetPart, MAX_SAMPLE_BYTES, NO_LABEL, SHRUNK_FILE, SampleRecord};
