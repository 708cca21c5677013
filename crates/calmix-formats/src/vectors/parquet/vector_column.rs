//! A column of vectors: lists of numbers, or lists of such lists.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DoubleType, FixedLenByteArrayType, FloatType};
use parquet::errors::ParquetError;

use crate::element_type::ElementType;
use crate::error::FormatProblem;

/// The column in one row group.
pub(super) struct VectorColumn {
    values: Values,
    /// The definition level of a present value.
    present: i16,
    /// The repetition level of a value that continues its list.
    inside: i16,
    levels: Levels,
}

enum Values {
    F16(ColumnReaderImpl<FixedLenByteArrayType>),
    F32(ColumnReaderImpl<FloatType>),
    F64(ColumnReaderImpl<DoubleType>),
}

/// The levels that encode the nesting in the file.
#[derive(Default)]
struct Levels {
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// Why rows of vectors cannot be read.
pub(super) enum VectorColumnProblem {
    /// An error of the crate.
    Parquet(ParquetError),
    /// A problem with the vector or id of a row, counted from the first requested row.
    Row(u64, FormatProblem),
    /// A problem with the label or group of a row.
    Label(u64, FormatProblem),
}

impl From<ParquetError> for VectorColumnProblem {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

impl VectorColumn {
    /// Makes a column; `None` if it has another type.
    pub(super) fn new(reader: ColumnReader, present: i16, inside: i16) -> Option<Self> {
        let values = match reader {
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Values::F16(reader),
            ColumnReader::FloatColumnReader(reader) => Values::F32(reader),
            ColumnReader::DoubleColumnReader(reader) => Values::F64(reader),
            _ => return None,
        };
        Some(Self { values, present, inside, levels: Levels::default() })
    }

    /// Appends the values of the next rows, each of `views` × `width`.
    pub(super) fn read(
        &mut self,
        rows: usize,
        views: usize,
        width: usize,
        into: &mut Vec<f32>,
    ) -> Result<(), VectorColumnProblem> {
        self.read_levels(rows, into)?;
        let mut row = 0;
        let mut rest = self.levels.repetition.as_slice();
        let mut present = self.levels.definition.as_slice();
        while !rest.is_empty() {
            let length = 1 + rest.iter().skip(1).take_while(|&&level| level > 0).count();
            let wrong = |problem: String| VectorColumnProblem::Row(row, FormatProblem::Content(problem));
            if present.iter().take(length).any(|&level| level < self.present) {
                return Err(wrong("the vector is missing, empty or has a number missing".into()));
            }
            let (found_views, found_width) = self.size(&rest[..length]).map_err(wrong)?;
            if (found_views, found_width) != (views, width) {
                let found = format!("{found_views} × {found_width}");
                return Err(wrong(format!(
                    "the vector has {found} numbers, the first one {views} × {width}"
                )));
            }
            rest = &rest[length..];
            present = present.get(length..).unwrap_or_default();
            row += 1;
        }
        if row != rows as u64 {
            return Err(VectorColumnProblem::Row(
                row,
                FormatProblem::Format("its row group ends here".into()),
            ));
        }
        Ok(())
    }

    /// Reads the next row, and returns its views and width.
    pub(super) fn first(&mut self) -> Result<(usize, usize), VectorColumnProblem> {
        self.read_levels(1, &mut Vec::new())?;
        let wrong = |problem: String| VectorColumnProblem::Row(0, FormatProblem::Content(problem));
        if self.levels.repetition.is_empty()
            || self.levels.definition.iter().any(|&level| level < self.present)
        {
            return Err(wrong("the vector is missing, empty or has a number missing".into()));
        }
        self.size(&self.levels.repetition).map_err(wrong)
    }

    /// Returns the views and width of a row with these repetition levels.
    fn size(&self, levels: &[i16]) -> Result<(usize, usize), String> {
        let views = 1 + levels.iter().skip(1).filter(|&&level| level < self.inside).count();
        let width = levels.len() / views;
        let is_even =
            levels.chunks(width.max(1)).all(|list| list.iter().skip(1).all(|&level| level == self.inside));
        if is_even && width * views == levels.len() {
            Ok((views, width))
        } else {
            Err("its vectors have different lengths".into())
        }
    }

    fn read_levels(&mut self, rows: usize, into: &mut Vec<f32>) -> Result<(), ParquetError> {
        let Levels { definition, repetition } = &mut self.levels;
        definition.clear();
        repetition.clear();
        match &mut self.values {
            Values::F32(reader) => {
                reader.read_records(rows, Some(definition), Some(repetition), into)?;
            }
            Values::F64(reader) => {
                let mut numbers = Vec::new();
                reader.read_records(rows, Some(definition), Some(repetition), &mut numbers)?;
                into.extend(numbers.iter().map(|&number| number as f32));
            }
            Values::F16(reader) => {
                let mut numbers = Vec::new();
                reader.read_records(rows, Some(definition), Some(repetition), &mut numbers)?;
                let bytes: Vec<u8> =
                    numbers.iter().flat_map(|number| number.data().iter().copied()).collect();
                ElementType::F16.append(&bytes, into);
            }
        }
        Ok(())
    }
}
