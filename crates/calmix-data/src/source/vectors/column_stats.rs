//! Statistics of vectors that indicate probable mistakes.

use crate::data_warning::DataWarning;
use calmix_formats::vectors::VectorSource;

/// Counts of all-zero vectors and constant columns.
#[derive(Debug, Default)]
pub(super) struct ColumnStats {
    zeros: u64,
    first_zero: Option<u64>,
    first_row: Vec<f32>,
    /// Whether each column has a value that differs from the first row.
    varies: Vec<bool>,
}

impl ColumnStats {
    /// Updates with consecutive rows of `numbers` values each; `first` is the number of the first row.
    pub(super) fn add(&mut self, first: u64, vectors: &[f32], numbers: usize) {
        if self.first_row.is_empty() {
            self.first_row = vectors.iter().take(numbers).copied().collect();
            self.varies = vec![false; numbers];
        }
        for (row, vector) in (first..).zip(vectors.chunks_exact(numbers)) {
            if vector.iter().all(|&number| number == 0.0) {
                self.zeros += 1;
                self.first_zero.get_or_insert(row);
            }
            for ((varies, number), first) in self.varies.iter_mut().zip(vector).zip(&self.first_row) {
                *varies |= number != first;
            }
        }
    }

    /// Returns the warnings for the user. In a single row, all columns are constant, so no warning is due.
    pub(super) fn warnings(&self, source: &VectorSource, numbers: usize) -> Vec<DataWarning> {
        let mut warnings = Vec::new();
        if let Some(first) = self.first_zero {
            let (path, row) = source.location(first);
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            warnings
                .push(DataWarning::ZeroVectors { vectors: self.zeros, example: format!("{file}[{row}]") });
        }
        let columns = self.varies.iter().filter(|varies| !**varies).count() as u64;
        if columns > 0 && source.rows() > 1 {
            warnings.push(DataWarning::ConstantColumns { columns, of: numbers as u64 });
        }
        warnings
    }
}
