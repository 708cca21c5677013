//! Reads the rows of a Parquet file one at a time.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result};

use super::image_columns::ImageColumns;
use crate::error::FormatError;
use crate::labels::text::{MAX_CLASSES, parse_group, parse_label};
use crate::parquet_file::{Leaf, ParquetFile, TextColumn, catch_panics, changed_type};

/// An iterator over rows in order.
pub struct ImageRows<'a> {
    file: &'a ParquetFile,
    columns: &'a ImageColumns,
    /// Whether images are read as well as labels.
    has_images: bool,
    next_group: usize,
    group: Option<RowGroup>,
    next_row: u64,
}

/// An open row group.
struct RowGroup {
    rows_left: u64,
    image: Option<ImageColumn>,
    label: Option<TextColumn>,
    group: Option<TextColumn>,
}

pub struct ImageRow {
    /// The row number, counted from 0.
    pub number: u64,
    /// The encoded image; `None` only if images are not read.
    pub image: Option<ByteArray>,
    /// The class; `None` if the image is unlabelled.
    pub label: Option<u32>,
    /// The name of the group; `None` if it has none, or images are not read.
    pub group: Option<String>,
}

impl<'a> ImageRows<'a> {
    /// Reads rows with images, labels and groups.
    pub fn with_images(file: &'a ParquetFile, columns: &'a ImageColumns) -> Self {
        Self { has_images: true, ..Self::labels(file, columns) }
    }

    /// Reads only the labels of the rows.
    pub fn labels(file: &'a ParquetFile, columns: &'a ImageColumns) -> Self {
        Self { file, columns, has_images: false, next_group: 0, group: None, next_row: 0 }
    }

    /// Reads the next row; `None` after the last one.
    ///
    /// # Errors
    /// If the file is damaged, the row has no image, or its label or group is invalid. The error names the row.
    pub fn next_row(&mut self) -> std::result::Result<Option<ImageRow>, FormatError> {
        let number = self.next_row;
        let at = |error: FormatError| error.at(format!("row {number}"));
        let Self { file, columns, has_images, .. } = *self;
        while self.group.as_ref().is_none_or(|group| group.rows_left == 0) {
            if self.next_group == file.metadata.num_row_groups() {
                return Ok(None);
            }
            let group = catch_panics(|| RowGroup::open(file, columns, self.next_group, has_images));
            self.group = Some(group.map_err(|error| at(file.damaged(&error)))?);
            self.next_group += 1;
        }
        let Some(group) = &mut self.group else { return Ok(None) };
        let (image, label, group) =
            catch_panics(|| group.read()).map_err(|error| at(file.damaged(&error)))?;
        let wrong = |problem: String| at(FormatError::content(&file.path, problem));
        if has_images && image.is_none() {
            let hint = "remove the row, or write the file with the images in it: `dataset.to_parquet(…)` of \
                        Hugging Face's datasets";
            return Err(wrong("there is no image in it".into()).hint(hint));
        }
        let label = parse_label(label.as_deref().unwrap_or_default());
        let label = label.map_err(|problem| at(FormatError::new(&file.path, problem)))?.map(|text| {
            let number = text.parse::<u32>().ok().filter(|&number| u64::from(number) < MAX_CLASSES);
            number.ok_or_else(|| {
                wrong(format!("the label is {text}, expected less than {MAX_CLASSES}, or -1 for none"))
                    .hint("correct the label")
            })
        });
        let group = parse_group(group.as_deref().unwrap_or_default());
        let group = group.map_err(|problem| at(FormatError::new(&file.path, problem)))?.map(str::to_owned);
        self.next_row += 1;
        Ok(Some(ImageRow { number, image, label: label.transpose()?, group }))
    }
}

impl RowGroup {
    fn open(file: &ParquetFile, columns: &ImageColumns, index: usize, has_images: bool) -> Result<Self> {
        let rows_left = file.metadata.row_group(index).num_rows().unsigned_abs();
        let image = if has_images { Some(ImageColumn::open(file, index, &columns.image)?) } else { None };
        let label = columns.label.as_ref().map(|leaf| file.text_column(index, leaf)).transpose()?;
        let group = columns.group.as_ref().filter(|_| has_images);
        let group = group.map(|leaf| file.text_column(index, leaf)).transpose()?;
        Ok(Self { rows_left, image, label, group })
    }

    /// Reads the image, label and group of the next row.
    fn read(&mut self) -> Result<(Option<ByteArray>, Option<String>, Option<String>)> {
        self.rows_left -= 1;
        let image = self.image.as_mut().map(ImageColumn::read).transpose()?.flatten();
        Ok((image, next_text(&mut self.label)?, next_text(&mut self.group)?))
    }
}

/// Reads the text of the next row, if the column exists.
fn next_text(column: &mut Option<TextColumn>) -> Result<Option<String>> {
    let Some(column) = column else { return Ok(None) };
    Ok(column.read(1)?.pop().flatten())
}

/// The images in a row group.
struct ImageColumn {
    values: ColumnReaderImpl<ByteArrayType>,
    /// The definition level of present bytes; lower if they, or the struct around them, are null.
    present: i16,
}

impl ImageColumn {
    fn open(file: &ParquetFile, group: usize, leaf: &Leaf) -> Result<Self> {
        let ColumnReader::ByteArrayColumnReader(values) = file.column(group, leaf, 1)? else {
            return Err(changed_type());
        };
        Ok(Self { values, present: leaf.description.max_def_level() })
    }

    /// Reads the image of the next row, if any.
    fn read(&mut self) -> Result<Option<ByteArray>> {
        let mut levels = Vec::new();
        let mut images = Vec::new();
        let (rows, ..) = self.values.read_records(1, Some(&mut levels), None, &mut images)?;
        let is_present = self.present == 0 || levels.first() == Some(&self.present);
        if rows != 1 || images.len() != usize::from(is_present) {
            return Err(ParquetError::General("a row group with fewer images than rows".into()));
        }
        Ok(images.pop())
    }
}
