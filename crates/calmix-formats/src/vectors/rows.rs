//! Rows of vectors, read in order and in blocks.

use std::fmt::Debug;

use super::shape::VectorShape;
use crate::error::FormatError;

/// Bytes of the largest block, as `f64`.
pub(super) const LARGEST_BLOCK: usize = 32 << 20;

/// Consecutive rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorBlock {
    /// The number of the first row.
    pub first: u64,
    /// The numbers, row by row, `views` × `width` each.
    pub vectors: Vec<f32>,
    /// The id of each row, if the file has ids.
    pub ids: Option<Vec<String>>,
    /// The label of each row, if the file has labels; `None` for an unlabelled row.
    pub labels: Option<Vec<Option<String>>>,
    /// The name of the group of each row, if the file has groups; `None` for a row without one.
    pub groups: Option<Vec<Option<String>>>,
}

/// The files of a source, opened and checked.
pub(crate) trait VectorRows: Debug + Send + Sync {
    /// Begins to read at a row.
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError>;
}

/// Rows that are read in order.
pub(crate) trait RowStream {
    /// Appends the next rows. There are as many: the caller knows how many the source has.
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> Result<(), FormatError>;
}

/// Reads and drops rows, for formats in which no row can be found without those before it.
pub(super) fn skip(stream: &mut dyn RowStream, shape: VectorShape, rows: u64) -> Result<(), FormatError> {
    let at_once = (LARGEST_BLOCK / (8 * shape.numbers().max(1))).clamp(1, 4096) as u64;
    let mut left = rows;
    while left > 0 {
        let rows = left.min(at_once);
        stream.read(rows as usize, &mut VectorBlock::default())?;
        left -= rows;
    }
    Ok(())
}
