//! The calibration of every class's probability, not only of the predicted class's.

use std::borrow::Cow;
use std::num::NonZeroU16;

use calmix_core::matrix::{MatrixOf, Scalar};

use super::bins::{BinSums, EqualWidth};
use super::{Binned, Binning, Counts, Edges, ReliabilityBin, ece};
use crate::checked;
use crate::error::MetricsError;

/// Computes the class-wise expected calibration error: the mean over classes of the binned error of that class's probability
/// against "this is the class".
///
/// Kull et al., "Beyond temperature scaling", 2019; the static calibration error of Nixon et al., "Measuring calibration in deep
/// learning", 2019. With many classes almost all probabilities are near zero and well calibrated, so the metric falls with the
/// number of classes: compare it only for the same number of classes.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn class_wise_ece<T: Scalar>(
    probabilities: MatrixOf<'_, T>,
    labels: &[u32],
    binning: Binning,
) -> Result<f64, MetricsError> {
    let counts = Counts::once(labels.len());
    if matches!(binning, Binning::EqualWidth { .. }) {
        return Ok(ClassWise::new(probabilities, labels, binning)?.ece(&counts));
    }
    // One class at a time: preparing all of them would take many times the memory of the matrix.
    checked::probabilities(probabilities, labels)?;
    let of_class = |class| {
        let (probability, happened) = events(probabilities, labels, class);
        ece(&Binned::of_events(probability, &happened, binning).bins(&counts))
    };
    let classes = probabilities.width();
    Ok((0..classes).map(of_class).sum::<f64>() / classes.max(1) as f64)
}

/// The probabilities of all classes, divided into bins once, for any counts of their rows.
///
/// With bins of equal width, the matrix is not copied. Bins of equal mass take about eight times the memory of an f32 matrix.
#[derive(Debug, Clone)]
pub struct ClassWise<'a, T: Clone = f32> {
    classes: usize,
    bins: Bins<'a, T>,
}

#[derive(Debug, Clone)]
enum Bins<'a, T: Clone> {
    EqualWidth(Cells<'a, T>),
    /// Bins of equal mass move with the counts, differently in every class.
    EqualMass(Vec<Binned>),
}

impl<'a, T: Scalar> ClassWise<'a, T> {
    /// Prepares the probabilities of every class.
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
    pub fn new(
        probabilities: MatrixOf<'a, T>,
        labels: &[u32],
        binning: Binning,
    ) -> Result<Self, MetricsError> {
        checked::probabilities(probabilities, labels)?;
        let classes = probabilities.width();
        let bins = match binning {
            Binning::EqualWidth { bins, edges } => {
                let widths = EqualWidth::new(bins, edges);
                Bins::EqualWidth(Cells::new(Cow::Borrowed(probabilities.data()), classes, labels, widths))
            }
            Binning::EqualMass { .. } => {
                let of_class = |class| {
                    let (probability, happened) = events(probabilities, labels, class);
                    Binned::of_events(probability, &happened, binning)
                };
                Bins::EqualMass((0..classes).map(of_class).collect())
            }
        };
        Ok(Self { classes, bins })
    }

    /// Owns the probabilities instead of borrowing them; they and the labels must have been checked.
    pub(crate) fn owning(
        probabilities: Vec<T>,
        classes: usize,
        labels: &[u32],
        bins: NonZeroU16,
        edges: Edges,
    ) -> Self {
        let widths = EqualWidth::new(bins, edges);
        let bins = Bins::EqualWidth(Cells::new(Cow::Owned(probabilities), classes, labels, widths));
        Self { classes, bins }
    }

    /// Computes the class-wise expected calibration error; see [`class_wise_ece`].
    pub fn ece(&self, counts: &Counts) -> f64 {
        let sum: f64 = match &self.bins {
            Bins::EqualWidth(cells) => cells.bins(counts).map(|bins| ece(&bins)).sum(),
            Bins::EqualMass(classes) => classes.iter().map(|class| ece(&class.bins(counts))).sum(),
        };
        sum / self.classes.max(1) as f64
    }
}

/// The contribution of each row to the bins of equal width of every class; a bin of a class is a cell.
///
/// Most probabilities are in the lowest bin of their class. They are added in one pass over the rows, which suits vector units;
/// the few others are in a list. The probabilities themselves are not copied.
#[derive(Debug, Clone)]
struct Cells<'a, T: Clone> {
    widths: EqualWidth,
    classes: usize,
    probabilities: Cow<'a, [T]>,
    /// The probabilities that are not in the lowest bin, row by row.
    others: Vec<Other>,
    rows: Vec<CellRow>,
}

/// A probability that is not in the lowest bin.
#[derive(Debug, Clone, Copy)]
struct Other {
    class: u32,
    /// Fits: there are at most `u16::MAX` + 1 bins.
    bin: u32,
}

#[derive(Debug, Clone, Copy)]
struct CellRow {
    /// The cell of the true class.
    happened: usize,
    /// The end of this row's entries in `others`.
    end: usize,
}

impl<'a, T: Scalar> Cells<'a, T> {
    /// Divides checked probabilities, one for each class and label, into cells.
    fn new(probabilities: Cow<'a, [T]>, classes: usize, labels: &[u32], widths: EqualWidth) -> Self {
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

    /// Returns the bins of every class.
    fn bins(&self, counts: &Counts) -> impl Iterator<Item = Vec<ReliabilityBin>> {
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
            let in_others: f64 = cells.iter().map(|cell| cell.count).sum();
            cells[0].count = counts.total() - in_others;
            cells[0].probability = lowest;
        }
        let of_class = move |class: usize| {
            let cells = cells[class * bins..(class + 1) * bins].iter();
            cells.zip(&self.widths.ranges).map(|(sums, &range)| sums.bin(range)).collect()
        };
        (0..self.classes).map(of_class)
    }
}

/// Returns the probabilities of one class, and whether it was the true one.
fn events<T: Scalar>(probabilities: MatrixOf<'_, T>, labels: &[u32], class: usize) -> (Vec<f64>, Vec<bool>) {
    let probability = probabilities.iter().map(|row| row[class].into()).collect();
    let happened = labels.iter().map(|&label| label as usize == class).collect();
    (probability, happened)
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;

    use super::*;

    #[test]
    fn class_wise_ece_is_a_mean_over_classes() {
        // Class 0: 0.75 once right, once wrong; class 1 the complement; class 2 never predicted, never true.
        let p = [0.75, 0.25, 0.0, 0.75, 0.25, 0.0];
        let p = Matrix::new(&p, 2, 3).unwrap();
        let error = class_wise_ece(p, &[0, 1], Binning::default()).unwrap();
        assert!((error - (0.25 + 0.25 + 0.0) / 3.0).abs() < 1e-15);
    }

    #[test]
    fn prepared_and_plain_measures_agree() {
        let p = [0.7, 0.2, 0.1, 0.1, 0.8, 0.1, 0.3, 0.3, 0.4, 0.7, 0.3, 0.0];
        let p = MatrixOf::new(&p, 4, 3).unwrap();
        let labels = [0, 1, 1, 2];
        let bins = NonZeroU16::new(2).unwrap();
        for binning in [Binning::default(), Binning::EqualMass { bins }] {
            let prepared = ClassWise::new(p, &labels, binning).unwrap();
            let plain = class_wise_ece(p, &labels, binning).unwrap();
            assert_eq!(prepared.ece(&Counts::once(4)), plain);
            assert!(plain > 0.0);
        }
    }

    #[test]
    fn f64_probabilities_keep_their_bin() {
        // As f32, 0.7 is below the edge 0.7 of ten bins.
        let binning = Binning::EqualWidth { bins: NonZeroU16::new(10).unwrap(), edges: Edges::LeftClosed };
        let wide = [0.7, 0.3, 0.75, 0.25];
        let narrow = wide.map(|p| p as f32);
        let labels = [0, 1];
        let of_wide = class_wise_ece(MatrixOf::new(&wide, 2, 2).unwrap(), &labels, binning).unwrap();
        let of_narrow = class_wise_ece(Matrix::new(&narrow, 2, 2).unwrap(), &labels, binning).unwrap();
        // Together in a bin: |0.725 − 0.5|, and |0.3 − 0|, |0.25 − 1| apart in class 1. Apart in both: 0.3 and 0.75 twice.
        assert!((of_wide - f64::midpoint(0.225, 0.525)).abs() < 1e-15, "{of_wide}");
        assert!((of_narrow - 0.525).abs() < 1e-7, "{of_narrow}");
    }
}
