//! Rows in contiguous arrays: `.npy`, `.npz`, safetensors, clip-retrieval.

use std::io::Read;
use std::path::PathBuf;

use super::array_data::ArrayData;
use super::array_labels::{ArrayLabels, LabelStream};
use super::parquet::ParquetTable;
use super::vector_source::{RowStream, VectorBlock, VectorRows};
use crate::element_type::ElementType;
use crate::error::FormatError;
use crate::read_at::read_error;

#[derive(Debug)]
pub(super) struct VectorArray {
    pub(super) path: PathBuf,
    pub(super) data: ArrayData,
    pub(super) rows: u64,
}

/// Arrays of vectors in sequence, and the metadata of their rows.
#[derive(Debug)]
pub(super) struct ArrayFormat {
    pub(super) arrays: Vec<VectorArray>,
    pub(super) element_type: ElementType,
    /// Values per row.
    pub(super) numbers: usize,
    pub(super) labels: Option<ArrayLabels>,
    /// Ids and labels, row by row.
    pub(super) metadata: Option<ParquetTable>,
}

impl VectorRows for ArrayFormat {
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError> {
        let mut skipped = first;
        let mut arrays = self.arrays.as_slice();
        while let [array, rest @ ..] = arrays
            && skipped >= array.rows
        {
            skipped -= array.rows;
            arrays = rest;
        }
        let labels = self.labels.as_ref().map(|labels| labels.stream(first)).transpose()?;
        let metadata = self.metadata.as_ref().map(|metadata| metadata.stream(first)).transpose()?;
        Ok(Box::new(ArrayStream {
            format: self,
            arrays,
            skipped,
            open: None,
            labels,
            metadata,
            bytes: Vec::new(),
        }))
    }
}

struct ArrayStream<'a> {
    format: &'a ArrayFormat,
    /// The arrays that are not open yet.
    arrays: &'a [VectorArray],
    /// The number of rows of the next array to skip.
    skipped: u64,
    open: Option<OpenArray<'a>>,
    labels: Option<LabelStream>,
    metadata: Option<Box<dyn RowStream + 'a>>,
    bytes: Vec<u8>,
}

struct OpenArray<'a> {
    array: &'a VectorArray,
    from: Box<dyn Read + Send>,
    rows_left: u64,
}

impl RowStream for ArrayStream<'_> {
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> Result<(), FormatError> {
        let row_bytes = self.format.numbers * self.format.element_type.bytes();
        let mut left = rows as u64;
        while left > 0 {
            let Some(open) = self.opened()? else { break };
            let rows = left.min(open.rows_left);
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.resize(rows as usize * row_bytes, 0);
            let Some(open) = &mut self.open else { break };
            open.from.read_exact(&mut bytes).map_err(|error| read_error(&open.array.path, error))?;
            self.format.element_type.append(&bytes, &mut into.vectors);
            open.rows_left -= rows;
            left -= rows;
            self.bytes = bytes;
        }
        if let Some(labels) = &mut self.labels {
            labels.read(rows, into.labels.get_or_insert_default())?;
        }
        self.metadata.as_mut().map_or(Ok(()), |metadata| metadata.read(rows, into))
    }
}

impl<'a> ArrayStream<'a> {
    /// Returns the current array, opening the next one if necessary; `None` after the last.
    fn opened(&mut self) -> Result<Option<&OpenArray<'a>>, FormatError> {
        if self.open.as_ref().is_none_or(|open| open.rows_left == 0) {
            let [array, rest @ ..] = self.arrays else { return Ok(None) };
            let row_bytes = (self.format.numbers * self.format.element_type.bytes()) as u64;
            let from = array.data.reader(self.skipped * row_bytes);
            let from = from.map_err(|error| read_error(&array.path, error))?;
            self.open = Some(OpenArray { array, from, rows_left: array.rows - self.skipped });
            self.skipped = 0;
            self.arrays = rest;
        }
        Ok(self.open.as_ref())
    }
}
