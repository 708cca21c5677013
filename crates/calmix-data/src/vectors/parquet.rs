//! Parquet: a column of vectors, with columns of ids, labels and groups if there are any; one file, or a folder of parts.
//!
//! Memory holds a page of each column and a block of rows.

mod row_stream;
mod schema;
mod texts;
mod vector_column;

use std::path::Path;

use parquet::file::metadata::ParquetMetaData;

use self::row_stream::ParquetStream;
use self::schema::Columns;
pub(crate) use self::texts::ParquetTexts;
use super::{
    RowStream, VectorFile, VectorFormat, VectorOptions, VectorPlace, VectorShape, VectorSource, is_plausible,
    skip,
};
use crate::error::{DataError, DataProblem};
use crate::parquet_file::ParquetFile;
use crate::source::listing::contents;
use crate::source::parquet_images::has_image_column;

/// Files of the same columns, one after the other.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    parts: Vec<TablePart>,
    /// The size of the vectors; views and width are 0 if only ids and labels are read.
    shape: VectorShape,
}

/// A file of a table.
#[derive(Debug)]
struct TablePart {
    file: ParquetFile,
    columns: Columns,
}

/// Opens the parts of a folder in the order of their names.
pub(super) fn open_folder(place: &VectorPlace, options: &VectorOptions) -> Result<VectorSource, DataError> {
    let files = parts(place)?;
    if files.is_empty() {
        let problem = DataProblem::Content("there are no vectors in it".into());
        let hint = "name a file (.npy, .npz, .parquet, .safetensors, .csv), a folder of .parquet files, or a \
                    folder of clip-retrieval";
        return Err(DataError::new(&place.folder, problem).hint(hint));
    }
    open(place, &files, options)
}

/// The names of the parts of a folder, in order.
fn parts(place: &VectorPlace) -> Result<Vec<String>, DataError> {
    let mut files = contents(&place.folder, "")?.files;
    files.retain(|name| Path::new(name).extension().is_some_and(|ending| ending == "parquet"));
    Ok(files)
}

/// Opens these files.
pub(super) fn open(
    place: &VectorPlace,
    names: &[String],
    options: &VectorOptions,
) -> Result<VectorSource, DataError> {
    let find = |metadata: &ParquetMetaData| Columns::with_vectors(metadata, options);
    let mut table = ParquetTable::open(place, names, find)?;
    let (views, width) = table.first_vector()?;
    let first = &table.parts[0].file.path;
    table.shape =
        VectorShape::new(table.shape.rows, views, width).map_err(|problem| DataError::new(first, problem))?;
    let bytes = table.parts.iter().map(|part| part.file.length()).sum();
    if !is_plausible(bytes, table.shape.unpacked_bytes()) {
        let problem =
            format!("{bytes} bytes that expand to {}: probably an attack", table.shape.unpacked_bytes());
        return Err(DataError::new(first, DataProblem::Limit(problem)));
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
    /// Opens files of which only ids and labels are read.
    pub(super) fn open_metadata(
        place: &VectorPlace,
        names: &[String],
        options: &VectorOptions,
    ) -> Result<Self, DataError> {
        Self::open(place, names, |metadata| Columns::without_vectors(metadata, options))
    }

    fn open(
        place: &VectorPlace,
        names: &[String],
        find: impl Fn(&ParquetMetaData) -> Result<Columns, DataProblem>,
    ) -> Result<Self, DataError> {
        let mut parts: Vec<TablePart> = Vec::with_capacity(names.len());
        let mut rows = 0_u64;
        for name in names {
            let file = ParquetFile::open(&place.folder, name)?;
            let columns = find(&file.metadata).map_err(|problem| {
                let error = DataError::new(&file.path, problem);
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
                return Err(DataError::new(&file.path, DataProblem::Content(problem)));
            }
            rows = rows.saturating_add(file.rows);
            parts.push(TablePart { file, columns });
        }
        Ok(Self { parts, shape: VectorShape { rows, views: 0, width: 0 } })
    }

    /// The rows of each file.
    pub(super) fn rows_of_files(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map(|part| part.file.rows)
    }

    /// Views and width of the first row.
    fn first_vector(&self) -> Result<(u64, u64), DataError> {
        let Some(part) = self.parts.iter().find(|part| part.file.rows > 0) else {
            let path = self.parts.first().map_or(Path::new(""), |part| &part.file.path);
            return Err(DataError::new(path, DataProblem::Content("there are no rows in it".into())));
        };
        row_stream::first_vector(part)
    }
}

impl VectorFormat for ParquetTable {
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, DataError> {
        let (mut stream, skipped) = ParquetStream::near(&self.parts, self.shape, first);
        skip(&mut stream, self.shape, skipped)?;
        Ok(Box::new(stream))
    }
}
