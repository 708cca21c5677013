//! Prepared datasets.

use crate::error::DataError;
use crate::manifest::Header;

/// What came out of preparing a dataset.
#[derive(Debug)]
pub struct Prepared {
    /// The header of the manifest that was written.
    pub header: Header,
    /// Files that could not be read and were left out.
    pub unreadable: Vec<DataError>,
}
