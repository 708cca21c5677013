//! The columns of a file, and columns of ids, labels or groups as text or integers.

use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use crate::error::FormatProblem;
use crate::labels::columns::is_group;

/// The maximum size of an id or label, in bytes: many rows can share one text of a dictionary.
const MAX_TEXT_BYTES: usize = 4096;

/// A column of a file, as a leaf of the schema.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Its index among the leaves.
    pub index: usize,
    /// Its type and its path in the schema.
    pub description: ColumnDescPtr,
}

impl Leaf {
    /// Iterates over all columns of a file.
    pub fn all(metadata: &ParquetMetaData) -> impl Iterator<Item = Self> {
        let columns = metadata.file_metadata().schema_descr().columns().iter();
        columns.cloned().enumerate().map(|(index, description)| Self { index, description })
    }

    /// Returns the name of the top-level column: the whole list or struct.
    pub fn root(&self) -> &str {
        self.description.path().parts().first().map_or("", String::as_str)
    }
}

/// Returns whether a column can hold ids, labels or groups: text, integers, or the floats into which pandas turns integers
/// with gaps.
pub fn can_hold_text(description: &ColumnDescriptor) -> bool {
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

/// Refuses a group column that holds neither text nor integers: if it were ignored, samples of one group would count as
/// independent.
pub fn check_group_column(metadata: &ParquetMetaData) -> std::result::Result<(), FormatProblem> {
    let is_other = |leaf: &Leaf| is_group(leaf.root()) && !can_hold_text(&leaf.description);
    let Some(other) = Leaf::all(metadata).find(is_other) else { return Ok(()) };
    Err(FormatProblem::Content(format!(
        "the column `{}` names the groups, but holds neither text nor whole numbers; convert it, or rename it if it holds \
         something else",
        other.root()
    )))
}

/// The column in one row group.
pub struct TextColumn {
    values: Values,
    /// The definition level of a present value.
    present: i16,
    is_unsigned: bool,
}

enum Values {
    Int32(ColumnReaderImpl<Int32Type>),
    Int64(ColumnReaderImpl<Int64Type>),
    Double(ColumnReaderImpl<DoubleType>),
    Bytes(ColumnReaderImpl<ByteArrayType>),
}

impl TextColumn {
    /// Makes a column; `None` if it has another type.
    pub fn new(reader: ColumnReader, present: i16, converted: ConvertedType) -> Option<Self> {
        let values = match reader {
            ColumnReader::Int32ColumnReader(reader) => Values::Int32(reader),
            ColumnReader::Int64ColumnReader(reader) => Values::Int64(reader),
            ColumnReader::DoubleColumnReader(reader) => Values::Double(reader),
            ColumnReader::ByteArrayColumnReader(reader) => Values::Bytes(reader),
            _ => return None,
        };
        let is_unsigned = matches!(converted, ConvertedType::UINT_32 | ConvertedType::UINT_64);
        Some(Self { values, present, is_unsigned })
    }

    /// Reads the values of the next rows; `None` for nulls. A value that is neither a short text nor an integer is an error.
    pub fn read(&mut self, rows: usize) -> Result<Vec<Option<String>>> {
        let mut levels = Vec::new();
        let is_unsigned = self.is_unsigned;
        let present: Vec<Option<String>> = match &mut self.values {
            Values::Int32(reader) => {
                let text = |value: &i32| {
                    if is_unsigned { value.cast_unsigned().to_string() } else { value.to_string() }
                };
                values(reader, rows, &mut levels)?.iter().map(|value| Some(text(value))).collect()
            }
            Values::Int64(reader) => {
                let text = |value: &i64| {
                    if is_unsigned { value.cast_unsigned().to_string() } else { value.to_string() }
                };
                values(reader, rows, &mut levels)?.iter().map(|value| Some(text(value))).collect()
            }
            Values::Double(reader) => {
                values(reader, rows, &mut levels)?.into_iter().map(whole).collect::<Result<_>>()?
            }
            Values::Bytes(reader) => {
                let bytes = values(reader, rows, &mut levels)?;
                bytes.iter().map(|value| text(value).map(Some)).collect::<Result<_>>()?
            }
        };
        let mut present = present.into_iter();
        let texts: Vec<Option<String>> = if self.present == 0 {
            present.by_ref().collect()
        } else {
            let text = |&level: &i16| if level == self.present { present.next().flatten() } else { None };
            levels.iter().map(text).collect()
        };
        if texts.len() == rows && present.len() == 0 {
            return Ok(texts);
        }
        Err(ParquetError::General(format!("{} values for {rows} rows", texts.len())))
    }
}

/// Reads the present values of the next rows, and the definition level of every row.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
) -> Result<Vec<T::T>> {
    let mut values = Vec::new();
    reader.read_records(rows, Some(levels), None, &mut values)?;
    Ok(values)
}

/// Formats an integer that pandas stored as a float because other values are missing.
fn whole(value: f64) -> Result<Option<String>> {
    if value.is_nan() {
        return Ok(None);
    }
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Ok(Some((value as i64).to_string()));
    }
    Err(ParquetError::General(format!("{value} is neither text nor a whole number")))
}

fn text(value: &ByteArray) -> Result<String> {
    if value.len() > MAX_TEXT_BYTES {
        return Err(ParquetError::General(format!(
            "a text of {} bytes, expected at most {MAX_TEXT_BYTES}",
            value.len()
        )));
    }
    Ok(value.as_utf8()?.to_owned())
}
