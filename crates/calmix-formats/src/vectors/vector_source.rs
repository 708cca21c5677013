//! The rows of a source of vectors, in blocks, with the location of each.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::shape::{VectorShape, too_long};
use crate::element_type::ElementType;
use crate::error::FormatError;
use crate::read_at::ReadAt;

/// The maximum size of a block as `f64`, in bytes.
const MAX_BLOCK_BYTES: usize = 32 << 20;

/// A block of consecutive rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorBlock {
    /// The number of the first row.
    pub first: u64,
    /// The values, row by row, `views` × `width` each.
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
    /// Starts reading at a row.
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError>;
}

/// A sequential reader for rows.
pub(crate) trait RowStream {
    /// Appends the next rows, which must exist: the caller knows how many rows the source has.
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> Result<(), FormatError>;
}

/// Reads and discards rows, for formats without random access to rows.
pub(super) fn skip(stream: &mut dyn RowStream, shape: VectorShape, rows: u64) -> Result<(), FormatError> {
    let at_once = (MAX_BLOCK_BYTES / (8 * shape.numbers().max(1))).clamp(1, 4096) as u64;
    let mut left = rows;
    while left > 0 {
        let rows = left.min(at_once);
        stream.read(rows as usize, &mut VectorBlock::default())?;
        left -= rows;
    }
    Ok(())
}

/// Rows of vectors, open for reading.
#[derive(Debug)]
pub struct VectorSource {
    shape: VectorShape,
    files: Vec<VectorFile>,
    /// The element type, if rows are contiguous in the files and can be read in place.
    in_place: Option<ElementType>,
    /// The columns other than those of vectors and ids.
    label_columns: Vec<String>,
    /// The sets of features that are joined; empty for a single one.
    sets: Vec<FeatureSet>,
    opened: Box<dyn VectorRows>,
}

/// A set of features of a joined source.
#[derive(Debug)]
pub(super) struct FeatureSet {
    pub(super) width: usize,
    pub(super) files: Vec<VectorFile>,
    /// The row of the set for each joined row, unless they are the same.
    pub(super) order: Option<Vec<u64>>,
}

/// A file that holds rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorFile {
    pub path: PathBuf,
    /// Its path relative to the folder of the source, with `/`.
    pub relative: String,
    /// Its length in bytes.
    pub length: u64,
    /// The number of rows.
    pub rows: u64,
    /// The offset of the first row; 0 if rows cannot be read in place.
    pub start: u64,
}

impl VectorFile {
    /// Describes a file that was opened by its name below the folder of the source.
    pub(super) fn new(file: &ReadAt, name: &str, rows: u64, start: u64) -> Self {
        Self { path: file.path().to_owned(), relative: name.to_owned(), length: file.length(), rows, start }
    }
}

impl VectorSource {
    pub(super) fn new(
        shape: VectorShape,
        files: Vec<VectorFile>,
        in_place: Option<ElementType>,
        opened: impl VectorRows + 'static,
    ) -> Self {
        Self { shape, files, in_place, label_columns: Vec::new(), sets: Vec::new(), opened: Box::new(opened) }
    }

    pub(super) fn with_label_columns(self, label_columns: Vec<String>) -> Self {
        Self { label_columns, ..self }
    }

    pub(super) fn with_sets(self, sets: Vec<FeatureSet>) -> Self {
        Self { sets, ..self }
    }

    /// Returns the widths of the sets of features that a vector consists of; empty for a single set.
    pub fn sets(&self) -> Vec<usize> {
        self.sets.iter().map(|set| set.width).collect()
    }

    /// Returns the path of its first file, for messages.
    pub(super) fn path(&self) -> &Path {
        self.files.first().map_or(Path::new(""), |file| &file.path)
    }

    /// Starts reading at a row.
    pub(super) fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError> {
        self.opened.stream(first)
    }

    /// Returns the columns of the file that can hold labels: text or integers, without those of ids and groups. Empty for a
    /// format without columns.
    pub fn label_columns(&self) -> &[String] {
        &self.label_columns
    }

    pub fn rows(&self) -> u64 {
        self.shape.rows
    }

    /// Returns the length of a vector.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// Returns the number of vectors per row: several views of one sample, usually one.
    pub fn views(&self) -> usize {
        self.shape.views
    }

    /// Returns the files that hold the rows, in the order of the rows.
    pub fn files(&self) -> &[VectorFile] {
        &self.files
    }

    /// Returns the element type if rows can be read in place.
    pub fn in_place(&self) -> Option<ElementType> {
        self.in_place
    }

    /// Reads from row `first` to the last in blocks of at most `rows_per_block` rows, or fewer if that many exceed the size
    /// of a block. Ends with the first error, which names the file and the row.
    pub fn blocks(
        &self,
        first: u64,
        rows_per_block: usize,
    ) -> impl Iterator<Item = Result<VectorBlock, FormatError>> {
        VectorBlocks { is_finite: true, ..self.all_blocks(first, rows_per_block) }
    }

    /// Reads blocks as [`blocks`](Self::blocks) does, but a value that is not finite is not an error: the caller handles its
    /// row.
    pub fn unchecked_blocks(
        &self,
        first: u64,
        rows_per_block: usize,
    ) -> impl Iterator<Item = Result<VectorBlock, FormatError>> {
        self.all_blocks(first, rows_per_block)
    }

    fn all_blocks(&self, first: u64, rows_per_block: usize) -> VectorBlocks<'_> {
        let max_rows = MAX_BLOCK_BYTES / (8 * self.shape.numbers());
        let rows_per_block = rows_per_block.clamp(1, max_rows.max(1));
        VectorBlocks { source: self, stream: None, next: first, rows_per_block, is_finite: false }
    }

    /// Returns the file of a row, and the number of the row in that file.
    pub fn location(&self, row: u64) -> (&Path, u64) {
        location(&self.files, row)
    }

    /// Returns the file, row and column of a number of a row, counted over all its views.
    fn place(&self, row: u64, number: usize) -> (&Path, u64, usize) {
        let mut column = number % self.shape.width;
        for set in &self.sets {
            if column < set.width {
                let row = set.order.as_ref().map_or(Some(row), |order| order.get(row as usize).copied());
                let (path, row) = location(&set.files, row.unwrap_or_default());
                return (path, row, number / self.shape.width * set.width + column);
            }
            column -= set.width;
        }
        let (path, row) = self.location(row);
        (path, row, number)
    }
}

/// Returns the file of a row, and the number of the row in that file.
fn location(files: &[VectorFile], row: u64) -> (&Path, u64) {
    let mut row = row;
    for file in files {
        if row < file.rows {
            return (&file.path, row);
        }
        row -= file.rows;
    }
    (files.last().map_or(Path::new(""), |file| &file.path), row)
}

struct VectorBlocks<'a> {
    source: &'a VectorSource,
    stream: Option<Box<dyn RowStream + 'a>>,
    next: u64,
    rows_per_block: usize,
    /// Whether every value must be finite.
    is_finite: bool,
}

impl VectorBlocks<'_> {
    fn read(&mut self) -> Result<VectorBlock, FormatError> {
        let rows = (self.source.rows() - self.next).min(self.rows_per_block as u64) as usize;
        let mut block = VectorBlock { first: self.next, ..VectorBlock::default() };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.source.opened.stream(self.next)?),
        };
        stream.read(rows, &mut block)?;
        let numbers = self.source.shape.numbers();
        if block.vectors.len() != rows * numbers {
            let (path, row) = self.source.location(self.next);
            let problem = format!("{} numbers in {rows} rows of {numbers}", block.vectors.len());
            return Err(FormatError::format(path, problem).at(format!("row {row}")));
        }
        let is_bad = |number: &f32| self.is_finite && !number.is_finite();
        if let Some(bad) = block.vectors.iter().position(is_bad) {
            let (path, row, column) = self.source.place(self.next + (bad / numbers) as u64, bad % numbers);
            let number = block.vectors.get(bad).copied().unwrap_or_default();
            let problem = format!("the number in column {column} is {number}, which is not finite");
            return Err(FormatError::content(path, problem)
                .at(format!("row {row}"))
                .hint("remove the row, or compute its vector again"));
        }
        let width = self.source.shape.width;
        let mut views = block.vectors.chunks_exact(width).enumerate().filter(|_| self.is_finite);
        if let Some((view, problem)) = views.find_map(|(view, vector)| Some((view, too_long(vector)?))) {
            let (path, row) = self.source.location(self.next + (view / self.source.shape.views) as u64);
            return Err(FormatError::content(path, problem)
                .at(format!("row {row}"))
                .hint("remove the row, or divide all vectors by the same number"));
        }
        self.next += rows as u64;
        Ok(block)
    }
}

impl Iterator for VectorBlocks<'_> {
    type Item = Result<VectorBlock, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.source.rows() {
            return None;
        }
        let block = self.read();
        if block.is_err() {
            self.next = u64::MAX;
        }
        Some(block)
    }
}
