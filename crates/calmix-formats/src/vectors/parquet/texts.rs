//! Reads one text column of a Parquet file, or of a folder of parts.

use std::path::Path;

use super::super::place::VectorPlace;
use super::row_stream::row_group_error;
use super::schema::{parts, text_leaf};
use crate::error::FormatError;
use crate::parquet_file::{Leaf, ParquetFile, catch_panics};

/// The number of texts to read at once.
const CHUNK_ROWS: u64 = 4096;

#[derive(Debug)]
pub struct ParquetTextColumn {
    files: Vec<(ParquetFile, Leaf)>,
}

impl ParquetTextColumn {
    /// Opens the column `name` of a file, or of the `.parquet` files of a folder.
    ///
    /// # Errors
    /// If a file is not Parquet, or has no such column.
    pub fn open(place: &VectorPlace, name: &str) -> Result<Self, FormatError> {
        let names = match &place.file {
            Some(file) => vec![file.clone()],
            None => parts(place)?,
        };
        let mut files = Vec::with_capacity(names.len());
        for part in &names {
            let file = ParquetFile::open(&place.folder, part)?;
            let leaf =
                text_leaf(&file.metadata, name).map_err(|problem| FormatError::new(&file.path, problem))?;
            file.check_inside(&[leaf.index])?;
            files.push((file, leaf));
        }
        Ok(Self { files })
    }

    /// Iterates over the files in order, each with its number of rows.
    pub fn files(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.files.iter().map(|(file, _)| (file.path.as_path(), file.rows))
    }

    /// Calls `visit` with every text and its row, counted over all files; `None` for a null.
    ///
    /// # Errors
    /// If a file is damaged, and the errors of `visit`.
    pub fn visit<E: From<FormatError>>(
        &self,
        mut visit: impl FnMut(u64, Option<String>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut row = 0;
        for (file, leaf) in &self.files {
            for (index, group) in file.metadata.row_groups().iter().enumerate() {
                let damaged = |error| row_group_error(file, index, &error);
                let mut column = catch_panics(|| file.text_column(index, leaf)).map_err(damaged)?;
                let mut left = group.num_rows().unsigned_abs();
                while left > 0 {
                    let count = left.min(CHUNK_ROWS);
                    let texts = catch_panics(|| column.read(count as usize)).map_err(damaged)?;
                    left -= count;
                    for text in texts {
                        visit(row, text)?;
                        row += 1;
                    }
                }
            }
        }
        Ok(())
    }
}
