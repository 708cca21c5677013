//! Parquet: a column of vectors, and optionally columns of ids, labels and groups, in one file or a folder of parts.
//!
//! Memory holds a page per column and a block of rows.

mod row_stream;
mod schema;
mod texts;
mod vector_column;

use std::path::Path;

use parquet::file::metadata::ParquetMetaData;

use self::row_stream::ParquetStream;
pub(crate) use self::schema::parts;
use self::schema::{Columns, TablePart};
pub use self::texts::ParquetTextColumn;
use super::options::VectorOptions;
use super::place::VectorPlace;
use super::shape::VectorShape;
use super::vector_source::{RowStream, VectorFile, VectorRows, VectorSource, skip};
use crate::error::{FormatError, FormatProblem};
use crate::expansion::is_plausible_for_vectors;
use crate::parquet_file::ParquetFile;
use crate::parquet_images::has_image_column;

/// Files with the same columns, in sequence.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    parts: Vec<TablePart>,
    /// The shape of the vectors; views and width are 0 if only ids and labels are read.
    shape: VectorShape,
}

/// Opens these files.
pub(super) fn open(
    place: &VectorPlace,
    names: &[String],
    options: &VectorOptions,
) -> Result<VectorSource, FormatError> {
    let find = |metadata: &ParquetMetaData| Columns::with_vectors(metadata, options);
    let mut table = ParquetTable::open(place, names, find)?;
    let (views, width) = table.first_vector()?;
    let first = &table.parts[0].file.path;
    table.shape = VectorShape::new(table.shape.rows, views, width)
        .map_err(|problem| FormatError::new(first, problem))?;
    let bytes = table.parts.iter().map(|part| part.file.length()).sum();
    if !is_plausible_for_vectors(bytes, table.shape.unpacked_bytes()) {
        let problem =
            format!("{bytes} bytes that expand to {}: probably an attack", table.shape.unpacked_bytes());
        return Err(FormatError::limit(first, problem));
    }
    let file = |TablePart { file, .. }: &TablePart| VectorFile {
        path: file.path.clone(),
        relative: file.relative.clone(),
        length: file.length(),
        rows: file.rows,
        start: 0,
    };
    let files = table.parts.iter().map(file).collect();
    let can_label = table.parts.first().map(|part| part.columns.can_label.clone()).unwrap_or_default();
    Ok(VectorSource::new(table.shape, files, None, table).with_label_columns(can_label))
}

impl ParquetTable {
    /// Opens files to read only ids and labels.
    pub(super) fn open_metadata(
        place: &VectorPlace,
        names: &[String],
        options: &VectorOptions,
    ) -> Result<Self, FormatError> {
        Self::open(place, names, |metadata| Columns::without_vectors(metadata, options))
    }

    fn open(
        place: &VectorPlace,
        names: &[String],
        find: impl Fn(&ParquetMetaData) -> Result<Columns, FormatProblem>,
    ) -> Result<Self, FormatError> {
        let mut parts: Vec<TablePart> = Vec::with_capacity(names.len());
        let mut rows = 0_u64;
        for name in names {
            let file = ParquetFile::open(&place.folder, name)?;
            let columns = find(&file.metadata).map_err(|problem| {
                let error = FormatError::new(&file.path, problem);
                if has_image_column(&file) {
                    error.hint("it holds images: pass its folder to `prepare` or `train`")
                } else {
                    error
                }
            })?;
            file.check_inside(&columns.leaves())?;
            if let Some(first) = parts.first()
                && first.columns.roles() != columns.roles()
            {
                let problem =
                    format!("it has other columns of ids, labels or groups than {}", first.file.relative);
                return Err(FormatError::content(&file.path, problem));
            }
            rows = rows.saturating_add(file.rows);
            parts.push(TablePart { file, columns });
        }
        Ok(Self { parts, shape: VectorShape { rows, views: 0, width: 0 } })
    }

    /// Iterates over the number of rows of each file.
    pub(super) fn rows_of_files(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map(|part| part.file.rows)
    }

    /// Returns the views and width of the first row.
    fn first_vector(&self) -> Result<(u64, u64), FormatError> {
        let Some(part) = self.parts.iter().find(|part| part.file.rows > 0) else {
            let path = self.parts.first().map_or(Path::new(""), |part| &part.file.path);
            return Err(FormatError::content(path, "there are no rows in it"));
        };
        row_stream::first_vector(part)
    }
}

impl VectorRows for ParquetTable {
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError> {
        let (mut stream, skipped) = ParquetStream::near(&self.parts, self.shape, first);
        skip(&mut stream, self.shape, skipped)?;
        Ok(Box::new(stream))
    }
}
