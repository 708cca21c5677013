//! The projected vectors of samples, row by row: in memory, or in a file that is read by position if they are many.
//!
//! The file has no name, so that nothing is left behind however the process ends. The page cache keeps as much of it in memory as
//! there is room for, so a run of any size needs little memory of its own.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_head::HeadError;
use calmix_head::projection::Projection;
use calmix_head::sample_vectors::{SampleVectors, VectorRows};
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_io::system::read_exact_at;

use crate::error::HeadsError;
pub(crate) const MAX_FITTED_SAMPLES: usize = 20_000;
/// The number of rows that are projected at once. With fewer, preparing the directions for the product would take as long as the
/// product.
pub const BLOCK_ROWS: usize = 2_048;

#[derive(Debug, Clone, Copy)]
pub struct TablePlace<'a> {
    /// The folder for files; `None` to keep all tables in memory.
    pub folder: Option<&'a Path>,
    /// The size in bytes up to which a table is kept in memory although there is a folder.
    pub max_bytes_in_memory: u64,
}

impl<'a> TablePlace<'a> {
    /// Keeps tables of any size in memory, for a command that writes nothing.
    pub const MEMORY: Self = Self { folder: None, max_bytes_in_memory: u64::MAX };
    /// The size in bytes up to which a run keeps a table in memory.
    pub const MAX_BYTES_IN_MEMORY: u64 = 256 << 20;

    /// Keeps small tables in memory, and others in files in this folder.
    pub fn new(folder: &'a Path) -> Self {
        Self { folder: Some(folder), max_bytes_in_memory: Self::MAX_BYTES_IN_MEMORY }
    }
}

/// Vectors of samples, row by row.
#[derive(Debug)]
pub struct VectorTable {
    /// The samples, ascending.
    pub ids: Vec<u64>,
    /// The number of numbers per row, all views of a sample.
    width: usize,
    numbers: Numbers,
    first_non_finite: Option<usize>,
}

#[derive(Debug)]
enum Numbers {
    Memory(Vec<f32>),
    File(VectorFile),
}

/// A file of little-endian f32, one row after the other.
#[derive(Debug)]
struct VectorFile {
    file: File,
    folder: PathBuf,
}

impl VectorTable {
    /// Appends the first numbers of a sample's row, its clean view. Returns `false` if the sample is not in the table.
    pub(crate) fn read_first(
        &self,
        id: u64,
        dimensions: usize,
        into: &mut Vec<f32>,
    ) -> Result<bool, HeadsError> {
        let Ok(row) = self.ids.binary_search(&id) else { return Ok(false) };
        self.read(row, 0..dimensions, into)?;
        Ok(true)
    }

    pub(crate) fn rows(&self) -> Result<SampleVectors<'_>, HeadsError> {
        Ok(match &self.numbers {
            Numbers::Memory(numbers) => Matrix::new(numbers, self.ids.len(), self.width)?.into(),
            Numbers::File(_) => SampleVectors::External(self),
        })
    }
}

impl VectorRows for VectorTable {
    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, row: usize, columns: Range<usize>, into: &mut Vec<f32>) -> Result<(), HeadError> {
        if row >= self.ids.len() || columns.start > columns.end || columns.end > self.width {
            return Err(HeadError::Input(format!("there is no row {row} with numbers {columns:?}")));
        }
        let start = row * self.width + columns.start;
        match &self.numbers {
            Numbers::Memory(numbers) => {
                into.extend_from_slice(numbers.get(start..start + columns.len()).unwrap_or_default());
                Ok(())
            }
            Numbers::File(stored) => stored.read(start, columns.len(), into),
        }
    }

    fn first_non_finite(&self) -> Option<usize> {
        self.first_non_finite
    }
}

impl VectorFile {
    fn read(&self, start: usize, length: usize, into: &mut Vec<f32>) -> Result<(), HeadError> {
        let mut bytes = vec![0; 4 * length];
        read_exact_at(&self.file, &mut bytes, 4 * start as u64).map_err(|error| {
            HeadError::Read(format!(
                "{}: cannot read the vectors of the run: {error}",
                shown(self.folder.display())
            ))
        })?;
        into.extend(bytes.as_chunks().0.iter().map(|&number| f32::from_le_bytes(number)));
        Ok(())
    }
}

#[derive(Debug)]
pub struct TableWriter {
    width: usize,
    numbers: Numbers,
    written: usize,
    first_non_finite: Option<usize>,
}

impl TableWriter {
    /// Creates a table for `rows` rows of `width` numbers.
    pub fn new(rows: usize, width: usize, place: TablePlace<'_>) -> Result<Self, HeadsError> {
        let bytes = 4 * rows as u64 * width as u64;
        let numbers = match place.folder.filter(|_| bytes > place.max_bytes_in_memory) {
            Some(folder) => {
                let file = tempfile::tempfile_in(folder).map_err(|error| FileError::new(folder, error))?;
                Numbers::File(VectorFile { file, folder: folder.to_owned() })
            }
            None => Numbers::Memory(Vec::with_capacity(rows * width)),
        };
        Ok(Self { width, numbers, written: 0, first_non_finite: None })
    }

    /// Projects vectors and appends them. They need not end at the end of a row.
    pub fn project(&mut self, projection: &Projection, vectors: &[f32]) -> Result<(), HeadsError> {
        let mut projected = Vec::new();
        project(projection, vectors, &mut projected)?;
        let infinite = projected.iter().position(|number| !number.is_finite());
        if let (None, Some(n)) = (self.first_non_finite, infinite) {
            self.first_non_finite = Some((self.written + n) / self.width.max(1));
        }
        self.written += projected.len();
        match &mut self.numbers {
            Numbers::Memory(numbers) => numbers.extend(projected),
            Numbers::File(VectorFile { file, folder }) => {
                let bytes: Vec<u8> = projected.iter().flat_map(|number| number.to_le_bytes()).collect();
                file.write_all(&bytes).map_err(|error| FileError::new(&*folder, error))?;
            }
        }
        Ok(())
    }

    /// Finishes the table; `ids` are the samples of its rows.
    pub fn finish(self, ids: Vec<u64>) -> Result<VectorTable, HeadsError> {
        let Self { width, numbers, written, first_non_finite } = self;
        if written != ids.len() * width {
            let rows = ids.len();
            return Err(calmix_core::error::CoreError::Shape { rows, width, got: written }.into());
        }
        Ok(VectorTable { ids, width, numbers, first_non_finite })
    }
}

/// Returns the stride of the samples that a projection is fitted on: evenly spaced, if there are more than needed.
pub fn fitted_stride(samples: usize) -> usize {
    samples.div_ceil(MAX_FITTED_SAMPLES).max(1)
}

/// Fits a projection to rows of `width` numbers in sets of these widths (none: one set), and keeps the given number of dimensions; 0
/// for all.
///
/// # Errors
/// If there are no rows, or a number is not finite; [`HeadsError::Stopped`] if `stop` becomes true.
pub fn fit_projection(
    rows: &[f32],
    width: usize,
    sets: &[usize],
    dimensions: usize,
    stop: &AtomicBool,
) -> Result<Projection, HeadsError> {
    Ok(Projection::fit_unless(matrix(rows, width)?, sets, dimensions, stop)?)
}

/// Projects rows and appends them to `into`; best called with [`BLOCK_ROWS`] rows.
pub fn project(projection: &Projection, rows: &[f32], into: &mut Vec<f32>) -> Result<(), HeadsError> {
    into.extend(projection.apply(matrix(rows, projection.width())?)?);
    Ok(())
}

fn matrix(numbers: &[f32], width: usize) -> Result<Matrix<'_>, HeadsError> {
    Ok(Matrix::new(numbers, numbers.len() / width.max(1), width)?)
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};
    use calmix_head::fit;
    use calmix_head::progress::FitProgress;
    use calmix_head::samples::{HeadSamples, TrainingRows};
    use calmix_head::settings::{Candidates, HeadSettings};
    use calmix_recipe::Layers;

    use super::*;
    use crate::head_settings::head_settings;
    use crate::vector_classifier::recipe;

    const SAMPLES: usize = 90;
    const VIEWS: usize = 5;
    const WIDTH: usize = 12;
    const DIMENSIONS: usize = 8;

    fn settings(candidates: Candidates) -> HeadSettings {
        let layers = Layers::new().recipe("vectors").set("train.steps=20").set("train.batch=8");
        let recipe = recipe(layers.set("network.folds=3"), VIEWS).unwrap();
        HeadSettings { candidates, ..head_settings(&recipe) }
    }

    fn vectors() -> (Vec<f32>, Projection) {
        let mut stream = Seed(7).stream(Domain::Init, 0, 0);
        let mut vectors = Vec::new();
        for sample in 0..SAMPLES {
            for place in 0..VIEWS * WIDTH {
                let is_own = place % WIDTH % 3 == sample % 3;
                vectors.push(stream.uniform() as f32 + if is_own { 1.0 } else { 0.0 });
            }
        }
        let projection = fit_projection(&vectors, WIDTH, &[], DIMENSIONS, &AtomicBool::new(false)).unwrap();
        (vectors, projection)
    }

    fn table(vectors: &[f32], projection: &Projection, place: TablePlace<'_>) -> VectorTable {
        let mut table = TableWriter::new(SAMPLES, VIEWS * DIMENSIONS, place).unwrap();
        // Blocks that do not end with a row.
        for block in vectors.chunks(7 * WIDTH) {
            table.project(projection, block).unwrap();
        }
        table.finish((0..SAMPLES as u64).map(|row| 3 * row).collect()).unwrap()
    }

    fn weights(table: &VectorTable, candidates: Candidates) -> Vec<Vec<u32>> {
        let classes = ["a", "b", "c"].map(str::to_owned);
        let labels: Vec<_> = (0..SAMPLES).map(|row| Some(row as u32 % 3)).collect();
        let is_one_view = candidates == Candidates::OneVector;
        let samples = HeadSamples {
            ids: &table.ids,
            vectors: table.rows().unwrap(),
            weak: if is_one_view { 0 } else { 2 },
            strong: if is_one_view { 4 } else { 2 },
            labels: &labels,
            classes: &classes,
            groups: &[],
            chosen: &[],
            weights: &[],
        };
        let rows = TrainingRows { labelled: (0..15).collect(), unlabelled: (0..SAMPLES).collect() };
        let stop = AtomicBool::new(false);
        let fitted = fit(samples, &rows, None, &settings(candidates), 2, &FitProgress::new(&stop)).unwrap();
        let numbers =
            |head: &calmix_head::network::Head| head.numbers().iter().map(|n| n.to_bits()).collect();
        fitted.heads.iter().map(|head| numbers(&head.trained.ema)).collect()
    }

    #[test]
    fn file_and_memory_train_the_same_heads() {
        let folder = tempfile::tempdir().unwrap();
        let (vectors, projection) = vectors();
        let in_file = TablePlace { folder: Some(folder.path()), max_bytes_in_memory: 0 };
        let stored = table(&vectors, &projection, in_file);
        let memory = table(&vectors, &projection, TablePlace::new(folder.path()));
        assert!(matches!(stored.numbers, Numbers::File(_)) && matches!(memory.numbers, Numbers::Memory(_)));
        // It has no name.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for (row, id) in memory.ids.iter().enumerate() {
            for columns in [0..VIEWS * DIMENSIONS, 3..9, 4..4] {
                let mut both = [Vec::new(), Vec::new()];
                stored.read(row, columns.clone(), &mut both[0]).unwrap();
                memory.read(row, columns, &mut both[1]).unwrap();
                assert_eq!(both[0], both[1], "{row}");
            }
            let mut clean = Vec::new();
            assert!(stored.read_first(*id, DIMENSIONS, &mut clean).unwrap() && clean.len() == DIMENSIONS);
            assert!(!stored.read_first(id + 1, DIMENSIONS, &mut clean).unwrap());
        }
        for candidates in [Candidates::Method, Candidates::OneVector] {
            let heads = weights(&memory, candidates);
            assert!(heads.len() > 1);
            assert_eq!(heads, weights(&stored, candidates), "{candidates:?}");
        }
    }

    #[test]
    fn rows_outside_the_table_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (vectors, projection) = vectors();
        for max_bytes_in_memory in [0, u64::MAX] {
            let place = TablePlace { folder: Some(folder.path()), max_bytes_in_memory };
            let table = table(&vectors, &projection, place);
            let mut into = Vec::new();
            table.read(SAMPLES, 0..1, &mut into).unwrap_err();
            table.read(0, 0..VIEWS * DIMENSIONS + 1, &mut into).unwrap_err();
            assert!(into.is_empty() && table.first_non_finite().is_none());
        }
    }

    #[test]
    fn number_that_is_not_finite_is_found_while_writing() {
        let (mut vectors, projection) = vectors();
        vectors[17 * VIEWS * WIDTH + 20] = f32::NAN;
        let folder = tempfile::tempdir().unwrap();
        let place = TablePlace { folder: Some(folder.path()), max_bytes_in_memory: 0 };
        assert_eq!(table(&vectors, &projection, place).first_non_finite(), Some(17));
        // Fewer numbers than rows.
        let short = TableWriter::new(2, DIMENSIONS, place).unwrap();
        short.finish(vec![1, 2]).unwrap_err();
    }
}
