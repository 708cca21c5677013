//! Reads Parquet files column by column and page by page with the column readers of the crate parquet, without Arrow.
//!
//! Memory holds a page of each column that is read, and pages are bounded. Calls into the crate go through
//! [`catch_panics()`], because it panics on some damaged files.

mod catch_panics;
mod chunks;
mod column;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;

pub use self::catch_panics::catch_panics;
use self::chunks::{Chunks, CountedPages};
pub use self::column::{Leaf, TextColumn, can_hold_text, check_group_column};
use crate::error::FormatError;
use crate::read_at::ReadAt;

/// An open file with its metadata read.
#[derive(Debug)]
pub struct ParquetFile {
    pub path: PathBuf,
    /// Its path below its folder, with `/`.
    pub relative: String,
    pub metadata: ParquetMetaData,
    /// The number of rows in all row groups.
    pub rows: u64,
    chunks: Arc<Chunks>,
}

impl ParquetFile {
    /// Opens `folder/name`; `folder` is canonical.
    ///
    /// # Errors
    /// If it is not a Parquet file below the folder, or its row groups are inconsistent.
    pub fn open(folder: &Path, name: &str) -> Result<Self, FormatError> {
        let file = ReadAt::open(folder, name)?;
        let path = file.path().to_owned();
        let chunks = Chunks::new(file);
        let metadata = catch_panics(|| ParquetMetaDataReader::new().parse_and_finish(&chunks));
        let metadata = metadata.map_err(|error| damaged(&path, &error))?;
        let mut rows = 0_u64;
        for (index, group) in metadata.row_groups().iter().enumerate() {
            let count = u64::try_from(group.num_rows())
                .map_err(|_| wrong(&path, index, "a negative number of rows"))?;
            rows = rows.checked_add(count).ok_or_else(|| wrong(&path, index, "too many rows"))?;
        }
        Ok(Self { path, relative: name.to_owned(), metadata, rows, chunks: Arc::new(chunks) })
    }

    /// Returns the length of the file, in bytes.
    pub fn length(&self) -> u64 {
        self.chunks.length()
    }

    /// Checks that these columns lie inside the file. Call it before reading them.
    pub fn check_inside(&self, leaves: &[usize]) -> Result<(), FormatError> {
        for (index, group) in self.metadata.row_groups().iter().enumerate() {
            for chunk in leaves.iter().map(|&leaf| group.column(leaf)) {
                // The crate asserts that these are not negative.
                let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
                let end = start.checked_add(chunk.compressed_size());
                let is_inside =
                    end.and_then(|end| u64::try_from(end).ok()).is_some_and(|end| end <= self.length());
                if start < 0 || chunk.compressed_size() < 0 || !is_inside {
                    let problem = "a column that is not inside the file";
                    return Err(wrong(&self.path, index, problem).hint("write it again"));
                }
            }
        }
        Ok(())
    }

    /// Opens a column of a row group; each row has `per_row` values.
    pub fn column(&self, group: usize, leaf: &Leaf, per_row: u64) -> Result<ColumnReader, ParquetError> {
        let group = self.metadata.row_group(group);
        let rows = group.num_rows().unsigned_abs();
        let column = group.column(leaf.index);
        let pages = SerializedPageReader::new(Arc::clone(&self.chunks), column, rows as usize, None)?;
        let pages = CountedPages::new(pages, rows.saturating_mul(per_row));
        Ok(get_column_reader(Arc::clone(&leaf.description), Box::new(pages)))
    }

    /// Opens a column of ids or labels in a row group.
    ///
    /// # Errors
    /// If it is damaged, or of another type.
    pub fn text_column(&self, group: usize, leaf: &Leaf) -> Result<TextColumn, ParquetError> {
        let present = leaf.description.max_def_level();
        let column =
            TextColumn::new(self.column(group, leaf, 1)?, present, leaf.description.converted_type());
        column.ok_or_else(changed_type)
    }

    /// Wraps an error of the crate with the path of the file.
    pub fn damaged(&self, error: &ParquetError) -> FormatError {
        damaged(&self.path, error)
    }
}

/// Returns the error for a column whose reader does not match its type.
pub fn changed_type() -> ParquetError {
    ParquetError::General("a column changed its type".into())
}

fn wrong(path: &Path, group: usize, problem: &str) -> FormatError {
    FormatError::format(path, problem).at(format!("row group {group}"))
}

fn damaged(path: &Path, error: &ParquetError) -> FormatError {
    let hint = match error {
        ParquetError::NYI(_) => "write it with Snappy or Zstandard: `df.to_parquet(…, compression='zstd')`",
        _ if error.to_string().contains("feature") => {
            "write it with Snappy or Zstandard: `df.to_parquet(…, compression='zstd')`"
        }
        _ => "write it again",
    };
    FormatError::format(path, format!("it cannot be read as Parquet: {error}")).hint(hint)
}
