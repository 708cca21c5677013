//! Where samples come from.
//!
//! Each source reads its files once from the first byte to the last, checks them, and writes the
//! [manifest](crate::manifest). Samples stay where they are; only what is compressed as a whole is unpacked into
//! the prepared folder, because nothing inside it can be reached otherwise.

pub mod cifar;
pub mod idx;
mod names;
mod place;
pub mod stl10;
pub mod svhn;

/// How many samples the files of a format without a header must hold.
///
/// Such a file that was cut between two samples looks whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// As many as the published dataset.
    Official,
    /// Any whole number above zero, for a dataset of one's own in the same format.
    Any,
}
