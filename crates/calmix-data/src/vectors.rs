//! Vectors that users already have, one per sample, in the files in which other tools write them.
//!
//! | files | module |
//! |---|---|
//! | `.npy`, and a folder of clip-retrieval with its metadata | `npy_file`, `clip_retrieval` |
//! | `.npz`, stored or deflated | `npz` |
//! | safetensors | `safetensors_file` |
//! | Parquet: one file, or a folder of parts | `parquet` |
//! | CSV with a column for each number | `csv_table` |
//!
//! A [`VectorSource`] gives the same rows for all of them, in blocks of bounded size: numbers as `f32`, checked to be
//! finite, with the ids, labels and groups that the file itself has. Pickles are refused: loading one can run any code.

mod array_format;
mod array_labels;
mod chosen;
mod clip_retrieval;
mod csv_table;
mod length;
mod npy_file;
mod npz;
mod number;
mod parquet;
mod pickle;
mod place;
mod safetensors_file;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

pub(crate) use array_labels::{ArrayLabels, LabelStream};
pub(crate) use csv_table::CsvLines;
pub use length::too_long;
pub(crate) use npy_file::NpyFile;
pub use number::Number;
pub(crate) use parquet::ParquetTexts;
pub(crate) use place::VectorPlace;

use crate::error::{DataError, DataProblem};
use crate::source::labels_csv::LabelColumns;

/// The most numbers of a row: every model's vectors are far shorter, and a few rows always fit into memory.
pub const MOST_NUMBERS: u64 = 1 << 20;

/// Bytes of the largest block, as `f64`.
const LARGEST_BLOCK: usize = 32 << 20;

/// What to read from a file that holds several arrays or columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorOptions {
    /// The column, array or tensor that holds the vectors; by default it is found by a usual name.
    pub vector_column: Option<String>,
    /// The columns that hold ids (`path`) and labels; by default they are found by usual names.
    pub columns: LabelColumns,
}

/// Rows of vectors, open for reading.
#[derive(Debug)]
pub struct VectorSource {
    shape: VectorShape,
    files: Vec<VectorFile>,
    /// How numbers are stored, if rows stand in the files one after the other and can be read in place.
    in_place: Option<Number>,
    /// Columns beside the vectors and the ids.
    label_columns: Vec<String>,
    format: Box<dyn VectorFormat>,
}

/// The size of all vectors of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorShape {
    pub(crate) rows: u64,
    pub(crate) views: usize,
    pub(crate) width: usize,
}

/// A file that holds rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VectorFile {
    pub(crate) path: PathBuf,
    /// Its path below the folder of the source, with `/`.
    pub(crate) relative: String,
    pub(crate) length: u64,
    pub(crate) rows: u64,
    /// Where the first row begins; 0 if rows are not in place.
    pub(crate) start: u64,
}

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
    /// The name of the [group](crate::groups) of each row, if the file has groups; `None` for a row without one.
    pub groups: Option<Vec<Option<String>>>,
}

/// Files of one format, opened and checked.
pub(crate) trait VectorFormat: Debug + Send + Sync {
    /// Begins to read at a row.
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, DataError>;
}

/// Rows that are read in order.
pub(crate) trait RowStream {
    /// Appends the next rows. There are as many: the caller knows how many the source has.
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> Result<(), DataError>;
}

impl VectorSource {
    /// Opens a file of vectors, or a folder of them, and reads as much as it takes to know their number and size.
    ///
    /// # Errors
    /// If it is a pickle or of an unknown format, there is no column of vectors or more than one, or the files contradict
    /// themselves or each other.
    pub fn open(path: &Path, options: &VectorOptions) -> Result<Self, DataError> {
        let place = VectorPlace::find(path)?;
        let Some(name) = &place.file else {
            return if clip_retrieval::is_one(&place.folder) {
                clip_retrieval::open(&place, options)
            } else {
                parquet::open_folder(&place, options)
            };
        };
        let file = place.open(name)?;
        let mut start = [0; 16];
        let length = file.length().min(start.len() as u64) as usize;
        file.read(&mut start[..length], 0)?;
        let is_named = |ending: &str| place.has_ending(&[ending]);
        match &start[..length] {
            start if crate::npy::is_npy(start) => npy_file::open(&place, name),
            start if start.starts_with(b"PK") => npz::open(&place, name, options),
            start if start.starts_with(b"PAR1") => parquet::open(&place, std::slice::from_ref(name), options),
            start if pickle::is_one(start) || place.has_ending(&pickle::ENDINGS) => {
                Err(pickle::refused(file.path()))
            }
            start if is_named("safetensors") || start.get(8) == Some(&b'{') => {
                safetensors_file::open(&place, name, options)
            }
            _ if is_named("csv") => csv_table::open(&place, name, options),
            _ => {
                let problem = "it is not a file of vectors that calmix knows".to_owned();
                Err(DataError::new(file.path(), DataProblem::Format(problem)).hint(FORMATS))
            }
        }
    }

    /// Whether a file of this name usually holds vectors.
    pub fn is_named(path: &Path) -> bool {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        ending
            .is_some_and(|ending| ["npy", "npz", "parquet", "safetensors", "csv"].contains(&ending.as_str()))
    }

    fn new(
        shape: VectorShape,
        files: Vec<VectorFile>,
        in_place: Option<Number>,
        format: impl VectorFormat + 'static,
    ) -> Self {
        Self { shape, files, in_place, label_columns: Vec::new(), format: Box::new(format) }
    }

    fn with_label_columns(self, label_columns: Vec<String>) -> Self {
        Self { label_columns, ..self }
    }

    /// The columns of the file that can hold labels: those of text or whole numbers, without those of ids and groups. None in a format
    /// without columns.
    pub fn label_columns(&self) -> &[String] {
        &self.label_columns
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.shape.rows
    }

    /// The length of a vector.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// The number of vectors in a row: several views of one sample, usually one.
    pub fn views(&self) -> usize {
        self.shape.views
    }

    /// The files that hold the rows, in the order of the rows.
    pub(crate) fn files(&self) -> &[VectorFile] {
        &self.files
    }

    /// How numbers are stored, if rows can be read in place.
    pub(crate) fn in_place(&self) -> Option<Number> {
        self.in_place
    }

    /// Reads from row `first` to the last, at most `rows_per_block` rows at a time, and fewer if that many are too large for
    /// a block. Ends with the first error, which names the file and the row.
    pub fn blocks(
        &self,
        first: u64,
        rows_per_block: usize,
    ) -> impl Iterator<Item = Result<VectorBlock, DataError>> {
        VectorBlocks { is_finite: true, ..self.all_blocks(first, rows_per_block) }
    }

    /// As [`blocks`](Self::blocks), but a number that is not finite is not an error: the caller deals with its row.
    pub fn unchecked_blocks(
        &self,
        first: u64,
        rows_per_block: usize,
    ) -> impl Iterator<Item = Result<VectorBlock, DataError>> {
        self.all_blocks(first, rows_per_block)
    }

    fn all_blocks(&self, first: u64, rows_per_block: usize) -> VectorBlocks<'_> {
        let most = LARGEST_BLOCK / (8 * self.shape.numbers());
        let rows_per_block = rows_per_block.clamp(1, most.max(1));
        VectorBlocks { source: self, stream: None, next: first, rows_per_block, is_finite: false }
    }

    /// The file of a row, and its number in that file.
    pub(crate) fn location(&self, row: u64) -> (&Path, u64) {
        let mut row = row;
        for file in &self.files {
            if row < file.rows {
                return (&file.path, row);
            }
            row -= file.rows;
        }
        (self.files.last().map_or(Path::new(""), |file| &file.path), row)
    }
}

const FORMATS: &str = "calmix reads .npy, .npz, .parquet, .safetensors and .csv";

impl VectorShape {
    /// The size by the dimensions of an array: rows × width, or rows × views × width.
    fn of_array(dimensions: &[u64]) -> Result<Self, DataProblem> {
        match *dimensions {
            [rows, width] => Self::new(rows, 1, width),
            [rows, views, width] => Self::new(rows, views, width),
            _ => {
                let problem = format!(
                    "the array has {} dimensions; expected samples × numbers, or samples × views × numbers",
                    dimensions.len()
                );
                Err(DataProblem::Content(problem))
            }
        }
    }

    fn new(rows: u64, views: u64, width: u64) -> Result<Self, DataProblem> {
        if rows == 0 || views == 0 || width == 0 {
            return Err(DataProblem::Content("there are no vectors in it".into()));
        }
        match views.checked_mul(width) {
            Some(numbers) if numbers <= MOST_NUMBERS => {
                Ok(Self { rows, views: views as usize, width: width as usize })
            }
            _ => {
                let problem = format!("{views} × {width} numbers per row, expected at most {MOST_NUMBERS}");
                Err(DataProblem::Limit(problem))
            }
        }
    }

    /// Numbers of a row.
    pub(crate) fn numbers(self) -> usize {
        self.views * self.width
    }

    /// Bytes of all rows as `f32`.
    fn unpacked_bytes(self) -> u64 {
        self.rows.saturating_mul(4 * self.numbers() as u64)
    }
}

struct VectorBlocks<'a> {
    source: &'a VectorSource,
    stream: Option<Box<dyn RowStream + 'a>>,
    next: u64,
    rows_per_block: usize,
    /// Whether every number must be finite.
    is_finite: bool,
}

impl VectorBlocks<'_> {
    fn read(&mut self) -> Result<VectorBlock, DataError> {
        let rows = (self.source.rows() - self.next).min(self.rows_per_block as u64) as usize;
        let mut block = VectorBlock { first: self.next, ..VectorBlock::default() };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.source.format.stream(self.next)?),
        };
        stream.read(rows, &mut block)?;
        let numbers = self.source.shape.numbers();
        if block.vectors.len() != rows * numbers {
            let (path, row) = self.source.location(self.next);
            let problem = format!("{} numbers in {rows} rows of {numbers}", block.vectors.len());
            return Err(DataError::new(path, DataProblem::Format(problem)).at(format!("row {row}")));
        }
        let is_bad = |number: &f32| self.is_finite && !number.is_finite();
        if let Some(bad) = block.vectors.iter().position(is_bad) {
            let (path, row) = self.source.location(self.next + (bad / numbers) as u64);
            let number = block.vectors.get(bad).copied().unwrap_or_default();
            let problem = format!("the number in column {} is {number}, which is not finite", bad % numbers);
            return Err(DataError::new(path, DataProblem::Content(problem))
                .at(format!("row {row}"))
                .hint("remove the row, or compute its vector again"));
        }
        let width = self.source.shape.width;
        let mut views = block.vectors.chunks_exact(width).enumerate().filter(|_| self.is_finite);
        if let Some((view, problem)) = views.find_map(|(view, vector)| Some((view, too_long(vector)?))) {
            let (path, row) = self.source.location(self.next + (view / self.source.shape.views) as u64);
            return Err(DataError::new(path, DataProblem::Content(problem))
                .at(format!("row {row}"))
                .hint("remove the row, or divide all vectors by the same number"));
        }
        self.next += rows as u64;
        Ok(block)
    }
}

impl Iterator for VectorBlocks<'_> {
    type Item = Result<VectorBlock, DataError>;

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

/// Whether files of `packed` bytes may plausibly hold vectors of `unpacked` bytes. Vectors of few different numbers, such as
/// fingerprints of molecules, compress a hundredfold and more. Blocks bound the memory; this protects the disk.
fn is_plausible(packed: u64, unpacked: u64) -> bool {
    unpacked <= packed.saturating_mul(1000).max(64 << 20)
}

/// Reads and drops rows, for formats in which no row can be found without those before it.
fn skip(stream: &mut dyn RowStream, shape: VectorShape, rows: u64) -> Result<(), DataError> {
    let at_once = (LARGEST_BLOCK / (8 * shape.numbers().max(1))).clamp(1, 4096) as u64;
    let mut left = rows;
    while left > 0 {
        let rows = left.min(at_once);
        stream.read(rows as usize, &mut VectorBlock::default())?;
        left -= rows;
    }
    Ok(())
}
