//! Sums over the bins of every class.

use std::borrow::Cow;

use calmix_core::matrix::MatrixOf;
use calmix_core::matrix::number::Number;

use crate::measure::bins::{BinSums, EqualWidth};
use crate::measure::{Counts, ReliabilityBin};

/// What each row adds to the bins of equal width of every class; a bin of a class is a cell.
///
/// Most probabilities are in the lowest bin of their class. They are added in one pass over the rows, which vector units
/// like; the few others are a list. The probabilities themselves are not copied.
#[derive(Debug, Clone)]
pub(super) struct Cells<'a, T: Clone> {
    widths: EqualWidth,
    classes: usize,
    /// Row by row.
    probabilities: Cow<'a, [T]>,
    /// The probabilities that are not in the lowest bin, row by row.
    others: Vec<Other>,
    rows: Vec<CellRow>,
}

/// A probability that is not in the lowest bin.
#[derive(Debug, Clone, Copy)]
struct Other {
    /// As in a label.
    class: u32,
    /// There are at most as many bins as a `NonZeroU16` counts, and one more.
    bin: u32,
}

#[derive(Debug, Clone, Copy)]
struct CellRow {
    /// The cell of the class that happened.
    happened: usize,
    /// Where the others of this row end.
    end: usize,
}

impl<'a, T: Number> Cells<'a, T> {
    /// Probabilities, one for each class and label, and labels must have been checked.
    pub(super) fn new(
        probabilities: Cow<'a, [T]>,
        classes: usize,
        labels: &[u32],
        widths: EqualWidth,
    ) -> Self {
        let bins = widths.ranges.len();
        let lowest = widths.end_of_lowest();
        let mut others = Vec::new();
        let mut rows = Vec::with_capacity(labels.len());
        for (row, &label) in probabilities.chunks_exact(classes.max(1)).zip(labels) {
            for (class, &p) in (0..).zip(row) {
                if p.into() >= lowest {
                    others.push(Other { class, bin: widths.bin(p.into()) as u32 });
                }
            }
            let label = label as usize;
            let happened = label * bins + widths.bin(row[label].into());
            rows.push(CellRow { happened, end: others.len() });
        }
        Self { widths, classes, probabilities, others, rows }
    }

    /// The bins of every class.
    pub(super) fn bins(&self, counts: &Counts) -> impl Iterator<Item = Vec<ReliabilityBin>> {
        let bins = self.widths.ranges.len();
        let end_of_lowest = self.widths.end_of_lowest();
        let mut lowest = vec![0.0_f64; self.classes];
        let mut cells = vec![BinSums::default(); self.classes * bins];
        let mut from = 0;
        let rows = self.probabilities.chunks_exact(self.classes.max(1)).zip(&self.rows);
        for ((row, &CellRow { happened, end }), &count) in rows.zip(counts.of_row()) {
            let others = &self.others[from..end];
            from = end;
            if count == 0.0 {
                continue;
            }
            for (sum, &p) in lowest.iter_mut().zip(row) {
                let p: f64 = p.into();
                *sum += if p < end_of_lowest { count * p } else { 0.0 };
            }
            for &Other { class, bin } in others {
                let cell = &mut cells[class as usize * bins + bin as usize];
                cell.count += count;
                cell.probability += count * row[class as usize].into();
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
            cells.zip(&self.widths.ranges).map(|(sums, &range)| sums.bin(range)).collect()
        };
        (0..self.classes).map(of_class)
    }
}

/// The probabilities of one class, and whether it was the true one.
pub(super) fn events<T: Number>(
    probabilities: MatrixOf<'_, T>,
    labels: &[u32],
    class: usize,
) -> (Vec<f64>, Vec<bool>) {
    let probability = probabilities.iter().map(|row| row[class].into()).collect();
    let happened = labels.iter().map(|&label| label as usize == class).collect();
    (probability, happened)
}
