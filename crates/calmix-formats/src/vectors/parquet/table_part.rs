//! The files of a table.

use std::path::Path;

use super::super::place::VectorPlace;
use super::schema::Columns;
use crate::error::FormatError;
use crate::listing::contents;
use crate::parquet_file::ParquetFile;

/// A file of a table.
#[derive(Debug)]
pub(super) struct TablePart {
    pub(super) file: ParquetFile,
    pub(super) columns: Columns,
}

/// The names of the parts of a folder, in order.
pub(in super::super) fn parts(place: &VectorPlace) -> Result<Vec<String>, FormatError> {
    let mut files = contents(&place.folder, "")?.files;
    files.retain(|name| Path::new(name).extension().is_some_and(|ending| ending == "parquet"));
    Ok(files)
}
