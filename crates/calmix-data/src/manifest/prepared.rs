//! What a source gives for its files.

use super::Header;
use crate::data_warning::DataWarning;
use crate::error::DataError;

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
