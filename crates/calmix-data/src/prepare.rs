//! What a source hands back when a dataset has been prepared.

use crate::error::DataError;
use crate::manifest::Header;

/// A dataset that was prepared.
#[derive(Debug)]
pub struct Prepared {
    /// What was written.
    pub header: Header,
    /// The files that could not be read and were left out.
    pub unreadable: Vec<DataError>,
}
