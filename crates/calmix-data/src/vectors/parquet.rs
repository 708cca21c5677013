//! Parquet: a column of vectors, with columns of ids and labels if there are any; one file, or a folder of parts.
//!
//! Read page by page through the crate's column readers, without its Arrow half. Memory holds a page of each column and a
//! block of rows.

mod chunks;
mod guarded;
mod pages;
mod row_stream;
mod schema;
mod text_column;
mod vector_column;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use self::chunks::Chunks;
use self::guarded::guarded;
use self::row_stream::ParquetStream;
use self::schema::Columns;
use super::{
    RowStream, VectorFile, VectorFormat, VectorOptions, VectorPlace, VectorShape, VectorSource, is_plausible,
    skip,
};
use crate::error::{DataError, DataProblem};
use crate::source::listing::contents;

/// Files of the same columns, one after the other.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    files: Vec<ParquetFile>,
    /// The size of the vectors; views and width are 0 if only ids and labels are read.
    shape: VectorShape,
}

#[derive(Debug)]
struct ParquetFile {
    path: PathBuf,
    relative: String,
    chunks: Arc<Chunks>,
    metadata: ParquetMetaData,
    columns: Columns,
    rows: u64,
}

/// Opens the parts of a folder in the order of their names.
pub(super) fn open_folder(place: &VectorPlace, options: &VectorOptions) -> Result<VectorSource, DataError> {
    let mut files = contents(&place.folder, "")?.files;
    files.retain(|name| Path::new(name).extension().is_some_and(|ending| ending == "parquet"));
    if files.is_empty() {
        let problem = DataProblem::Content("there are no vectors in it".into());
        let hint = "name a file (.npy, .npz, .parquet, .safetensors, .csv), a folder of .parquet files, or a \
                    folder of clip-retrieval";
        return Err(DataError::new(&place.folder, problem).hint(hint));
    }
    open(place, &files, options)
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
    let first = &table.files[0].path;
    table.shape =
        VectorShape::new(table.shape.rows, views, width).map_err(|problem| DataError::new(first, problem))?;
    let bytes = table.files.iter().map(|file| file.chunks.length()).sum();
    if !is_plausible(bytes, table.shape.unpacked_bytes()) {
        let problem =
            format!("{bytes} bytes that expand to {}: probably an attack", table.shape.unpacked_bytes());
        return Err(DataError::new(first, DataProblem::Limit(problem)));
    }
    let file = |file: &ParquetFile| VectorFile {
        path: file.path.clone(),
        relative: file.relative.clone(),
        length: file.chunks.length(),
        rows: file.rows,
        start: 0,
    };
    let files = table.files.iter().map(file).collect();
    Ok(VectorSource::new(table.shape, files, None, table))
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
        let mut files: Vec<ParquetFile> = Vec::with_capacity(names.len());
        let mut rows = 0_u64;
        for name in names {
            let file = ParquetFile::open(place, name, &find)?;
            if let Some(first) = files.first()
                && first.columns.roles() != file.columns.roles()
            {
                let problem = format!("it has other columns of ids and labels than {}", first.relative);
                return Err(DataError::new(&file.path, DataProblem::Content(problem)));
            }
            rows = rows.saturating_add(file.rows);
            files.push(file);
        }
        Ok(Self { files, shape: VectorShape { rows, views: 0, width: 0 } })
    }

    /// The rows of each file.
    pub(super) fn rows_of_files(&self) -> impl Iterator<Item = u64> {
        self.files.iter().map(|file| file.rows)
    }

    /// Views and width of the first row.
    fn first_vector(&self) -> Result<(u64, u64), DataError> {
        let file = self.files.iter().find(|file| file.rows > 0);
        let Some(file) = file else {
            let path = self.files.first().map_or(Path::new(""), |file| &file.path);
            return Err(DataError::new(path, DataProblem::Content("there are no rows in it".into())));
        };
        row_stream::first_vector(file)
    }
}

impl VectorFormat for ParquetTable {
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, DataError> {
        let (mut stream, skipped) = ParquetStream::near(&self.files, self.shape, first);
        skip(&mut stream, self.shape, skipped)?;
        Ok(Box::new(stream))
    }
}

impl ParquetFile {
    fn open(
        place: &VectorPlace,
        name: &str,
        find: &impl Fn(&ParquetMetaData) -> Result<Columns, DataProblem>,
    ) -> Result<Self, DataError> {
        let file = place.open(name)?;
        let path = file.path().to_owned();
        let chunks = Chunks::new(file);
        let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&chunks));
        let metadata = metadata.map_err(|error| damaged(&path, &error))?;
        let columns = find(&metadata).map_err(|problem| DataError::new(&path, problem))?;
        let mut rows = 0_u64;
        for (index, group) in metadata.row_groups().iter().enumerate() {
            let wrong = |what: &str| {
                DataError::new(&path, DataProblem::Format(what.to_owned())).at(format!("row group {index}"))
            };
            let count = u64::try_from(group.num_rows()).map_err(|_| wrong("a negative number of rows"))?;
            rows = rows.checked_add(count).ok_or_else(|| wrong("too many rows"))?;
            for chunk in columns.leaves().map(|leaf| group.column(leaf)) {
                // The crate asserts that these are not negative.
                let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
                let end = start.checked_add(chunk.compressed_size());
                let is_inside =
                    end.and_then(|end| u64::try_from(end).ok()).is_some_and(|end| end <= chunks.length());
                if start < 0 || chunk.compressed_size() < 0 || !is_inside {
                    return Err(wrong("a column that is not inside the file").hint("write it again"));
                }
            }
        }
        Ok(Self { path, relative: name.to_owned(), chunks: Arc::new(chunks), metadata, columns, rows })
    }
}

/// What the crate says about a file.
fn damaged(path: &Path, error: &ParquetError) -> DataError {
    let hint = match error {
        ParquetError::NYI(_) => "write it with Snappy or Zstandard: `df.to_parquet(…, compression='zstd')`",
        _ if error.to_string().contains("feature") => {
            "write it with Snappy or Zstandard: `df.to_parquet(…, compression='zstd')`"
        }
        _ => "write it again",
    };
    DataError::new(path, DataProblem::Format(format!("it cannot be read as Parquet: {error}"))).hint(hint)
}
