//! A column of a Parquet file.

use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescPtr;

/// A column of a file, by its index among the leaves of the schema.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Its index among the leaves.
    pub index: usize,
    /// Its type and its path in the schema.
    pub description: ColumnDescPtr,
}

impl Leaf {
    /// All columns of a file.
    pub fn all(metadata: &ParquetMetaData) -> impl Iterator<Item = Self> {
        let columns = metadata.file_metadata().schema_descr().columns().iter();
        columns.cloned().enumerate().map(|(index, description)| Self { index, description })
    }

    /// The name of the column that the leaf belongs to: that of the whole list or struct.
    pub fn root(&self) -> &str {
        self.description.path().parts().first().map_or("", String::as_str)
    }
}
