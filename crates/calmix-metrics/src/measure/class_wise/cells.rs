//! BinSums over the bins of every class.

use calmix_core::matrix::Matrix;

use crate::measure::bins::{BinSums, EqualWidth};
use crate::measure::{Counts, ReliabilityBin};

/// What each row adds to the bins of equal width of every class; a bin of a class is a cell.
///
/// Most probabilities are in the lowest bin of their class: these are a dense matrix, which vector units like;
/// the few others are a list.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    /// Where each bin begins and ends.
    ranges: Vec<(f64, f64)>,
    classes: usize,
    /// CellRow by row, zero where a probability is in another bin.
    lowest: Vec<f32>,
    /// The cell and the probability, row by row.
    others: Vec<(usize, f32)>,
    rows: Vec<CellRow>,
}

#[derive(Debug, Clone, Copy)]
struct CellRow {
    /// The cell of the class that happened.
    happened: usize,
    /// Where the others of this row end.
    end: usize,
}

impl Cells {
    /// Probabilities and labels must have been checked.
    pub(super) fn new(probabilities: Matrix<'_>, labels: &[u32], widths: EqualWidth) -> Self {
        let bins = widths.ranges.len();
        let mut lowest = vec![0.0; probabilities.data().len()];
        let mut others = Vec::new();
        let mut rows = Vec::with_capacity(labels.len());
        let classes = probabilities.width();
        for ((row, lowest), &label) in
            probabilities.iter().zip(lowest.chunks_exact_mut(classes.max(1))).zip(labels)
        {
            let label = label as usize;
            for (class, (&p, lowest)) in row.iter().zip(lowest).enumerate() {
                match widths.bin(f64::from(p)) {
                    0 => *lowest = p,
                    bin => others.push((class * bins + bin, p)),
                }
            }
            let happened = label * bins + widths.bin(f64::from(row[label]));
            rows.push(CellRow { happened, end: others.len() });
        }
        Self { ranges: widths.ranges, classes, lowest, others, rows }
    }

    /// The bins of every class.
    pub(super) fn bins(&self, counts: &Counts) -> impl Iterator<Item = Vec<ReliabilityBin>> {
        let bins = self.ranges.len();
        let mut lowest = vec![0.0_f64; self.classes];
        let mut cells = vec![BinSums::default(); self.classes * bins];
        let mut from = 0;
        let rows = self.lowest.chunks_exact(self.classes.max(1)).zip(&self.rows);
        for ((row, &CellRow { happened, end }), &count) in rows.zip(counts.of_row()) {
            let others = &self.others[from..end];
            from = end;
            if count == 0.0 {
                continue;
            }
            for (sum, &p) in lowest.iter_mut().zip(row) {
                *sum += count * f64::from(p);
            }
            for &(cell, p) in others {
                cells[cell].count += count;
                cells[cell].probability += count * f64::from(p);
            }
            cells[happened].happened += count;
        }
        for (cells, lowest) in cells.chunks_exact_mut(bins).zip(lowest) {
            let elsewhere: f64 = cells.iter().map(|cell| cell.count).sum();
            cells[0].count = counts.total() - elsewhere;
            cells[0].probability = lowest;
        }
        let of_class = move |class: usize| {
            let cells = cells[class * bins..(class + 1) * bins].iter();
            cells.zip(&self.ranges).map(|(sums, &range)| sums.bin(range)).collect()
        };
        (0..self.classes).map(of_class)
    }
}
