//! The files of a table, and their columns of vectors, ids, labels and groups.

use std::path::Path;

use csv::StringRecord;
use parquet::basic::{LogicalType, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::super::options::{VectorOptions, choose};
use super::super::place::VectorPlace;
use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::{group_column, id_column, label_column};
use crate::listing::contents;
use crate::parquet_file::{Leaf, ParquetFile, can_hold_text, check_group_column};

/// A file of a table.
#[derive(Debug)]
pub(super) struct TablePart {
    pub(super) file: ParquetFile,
    pub(super) columns: Columns,
}

/// Returns the names of the parts of a folder, in order.
pub(crate) fn parts(place: &VectorPlace) -> Result<Vec<String>, FormatError> {
    let mut files = contents(&place.folder, "")?.files;
    files.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "parquet"));
    Ok(files)
}

/// The columns to read.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) vector: Option<Leaf>,
    pub(super) id: Option<Leaf>,
    pub(super) label: Option<Leaf>,
    pub(super) group: Option<Leaf>,
    /// The columns that can hold labels, except those of the ids and groups.
    pub(super) can_label: Vec<String>,
}

impl Columns {
    /// Finds the columns of vectors, ids, labels and groups.
    pub(super) fn with_vectors(
        metadata: &ParquetMetaData,
        options: &VectorOptions,
    ) -> Result<Self, FormatProblem> {
        let mut columns = Self::without_vectors(metadata, options)?;
        let lists: Vec<Leaf> = Leaf::all(metadata).filter(|leaf| is_vector(&leaf.description)).collect();
        let names: Vec<&str> = lists.iter().map(Leaf::root).collect();
        let chosen = choose(&names, options.vector_column.as_deref(), "columns")?;
        columns.vector = lists.into_iter().nth(chosen);
        Ok(columns)
    }

    /// Finds the columns of ids, labels and groups only.
    pub(super) fn without_vectors(
        metadata: &ParquetMetaData,
        options: &VectorOptions,
    ) -> Result<Self, FormatProblem> {
        check_group_column(metadata)?;
        let texts: Vec<Leaf> = Leaf::all(metadata).filter(|leaf| can_hold_text(&leaf.description)).collect();
        let header: StringRecord = texts.iter().map(|leaf| leaf.description.name()).collect();
        let id = id_column(&header, &options.columns)?;
        let label = label_column(&header, &options.columns)?;
        let take = |column: Option<usize>| column.and_then(|column| texts.get(column).cloned());
        // The user may have assigned this column another role.
        let group = group_column(&header)?.filter(|&column| ![id, label].contains(&Some(column)));
        let others = (0..header.len()).filter(|&column| ![id, group].contains(&Some(column)));
        let can_label = others.map(|column| header[column].to_owned()).collect();
        Ok(Self { vector: None, id: take(id), label: take(label), group: take(group), can_label })
    }

    /// Returns the columns as indices.
    pub(super) fn leaves(&self) -> Vec<usize> {
        [&self.vector, &self.id, &self.label, &self.group]
            .into_iter()
            .flatten()
            .map(|leaf| leaf.index)
            .collect()
    }

    /// Returns whether there are ids, labels and groups.
    pub(super) fn roles(&self) -> [bool; 3] {
        [self.id.is_some(), self.label.is_some(), self.group.is_some()]
    }
}

/// Finds a text column by name.
pub(super) fn text_leaf(metadata: &ParquetMetaData, name: &str) -> Result<Leaf, FormatProblem> {
    let mut texts = Leaf::all(metadata).filter(|leaf| can_hold_text(&leaf.description));
    texts.find(|leaf| leaf.description.name() == name).ok_or_else(|| {
        let columns: Vec<String> = Leaf::all(metadata).map(|leaf| leaf.root().to_owned()).collect();
        let columns = columns.join(", ");
        FormatProblem::Content(format!("no column `{name}` of texts; the columns are: {columns}"))
    })
}

/// Returns whether a column is a list of floating-point numbers, or a list of such lists.
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
