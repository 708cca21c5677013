//! Which columns of a Parquet file hold vectors, ids and labels.

use csv::StringRecord;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::super::VectorOptions;
use super::super::chosen::choose;
use crate::error::DataProblem;
use crate::parquet_file::Leaf;
use crate::source::labels_csv::{id_column, label_column};

/// The columns that are read.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) vector: Option<Leaf>,
    pub(super) id: Option<Leaf>,
    pub(super) label: Option<Leaf>,
    /// The names of the columns that can hold labels, without that of the ids.
    pub(super) can_label: Vec<String>,
}

impl Columns {
    /// Vectors, ids and labels.
    pub(super) fn with_vectors(
        metadata: &ParquetMetaData,
        options: &VectorOptions,
    ) -> Result<Self, DataProblem> {
        let mut columns = Self::without_vectors(metadata, options)?;
        let lists: Vec<Leaf> = Leaf::all(metadata).filter(|leaf| is_vector(&leaf.description)).collect();
        let names: Vec<&str> = lists.iter().map(Leaf::root).collect();
        let chosen = choose(&names, options.vector_column.as_deref(), "columns")?;
        columns.vector = lists.into_iter().nth(chosen);
        Ok(columns)
    }

    /// Ids and labels alone.
    pub(super) fn without_vectors(
        metadata: &ParquetMetaData,
        options: &VectorOptions,
    ) -> Result<Self, DataProblem> {
        let texts: Vec<Leaf> = Leaf::all(metadata).filter(|leaf| is_text(&leaf.description)).collect();
        let header: StringRecord = texts.iter().map(|leaf| leaf.description.name()).collect();
        let id = id_column(&header, &options.columns)?;
        let label = label_column(&header, &options.columns)?;
        let take = |column: Option<usize>| column.and_then(|column| texts.get(column).cloned());
        let others = (0..header.len()).filter(|column| Some(*column) != id);
        let can_label = others.map(|column| header[column].to_owned()).collect();
        Ok(Self { vector: None, id: take(id), label: take(label), can_label })
    }

    /// The columns, by their indices.
    pub(super) fn leaves(&self) -> Vec<usize> {
        [&self.vector, &self.id, &self.label].into_iter().flatten().map(|leaf| leaf.index).collect()
    }

    /// Whether there are ids and labels.
    pub(super) fn roles(&self) -> [bool; 2] {
        [self.id.is_some(), self.label.is_some()]
    }
}

/// A column of texts, by its name.
pub(super) fn text_leaf(metadata: &ParquetMetaData, name: &str) -> Result<Leaf, DataProblem> {
    let mut texts = Leaf::all(metadata).filter(|leaf| is_text(&leaf.description));
    texts.find(|leaf| leaf.description.name() == name).ok_or_else(|| {
        let columns: Vec<String> = Leaf::all(metadata).map(|leaf| leaf.root().to_owned()).collect();
        let columns = columns.join(", ");
        DataProblem::Content(format!("no column `{name}` of texts; the columns are: {columns}"))
    })
}

/// Whether a column is a list of floating-point numbers, or a list of such lists.
fn is_vector(description: &ColumnDescriptor) -> bool {
    let is_float = match description.physical_type() {
        Type::FLOAT | Type::DOUBLE => true,
        Type::FIXED_LEN_BYTE_ARRAY => {
            description.logical_type_ref() == Some(&LogicalType::Float16) && description.type_length() == 2
        }
        _ => false,
    };
    is_float && matches!(description.max_rep_level(), 1 | 2)
}

/// Whether a column can hold ids or labels: text, whole numbers, or numbers that pandas made of whole ones with gaps.
fn is_text(description: &ColumnDescriptor) -> bool {
    let is_text = match description.physical_type() {
        Type::INT32 | Type::INT64 | Type::DOUBLE => true,
        Type::BYTE_ARRAY => {
            matches!(
                description.converted_type(),
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::NONE
            )
        }
        _ => false,
    };
    is_text && description.max_rep_level() == 0 && description.path().parts().len() == 1
}
