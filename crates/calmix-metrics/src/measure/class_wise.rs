//! The calibration of every class's probability, not only of the predicted class's.

mod cells;

use std::borrow::Cow;
use std::num::NonZeroU16;

use calmix_core::matrix::MatrixOf;
use calmix_core::matrix::number::Number;

use super::bins::EqualWidth;
use super::{Binned, Binning, Counts, Edges, ece};
use crate::checked;
use crate::error::MetricsError;
use cells::{Cells, events};

/// Class-wise expected calibration error: the mean over classes of the binned error of that class's
/// probability against "this is the class".
///
/// Kull et al., "Beyond temperature scaling", 2019; the static calibration error of Nixon et al., "Measuring
/// calibration in deep learning", 2019. With many classes almost all probabilities are near zero and well
/// calibrated, so the metric falls with the number of classes: compare it only for the same number of classes.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn class_wise_ece<T: Number>(
    probabilities: MatrixOf<'_, T>,
    labels: &[u32],
    binning: Binning,
) -> Result<f64, MetricsError> {
    let counts = Counts::once(labels.len());
    if matches!(binning, Binning::EqualWidth { .. }) {
        return Ok(ClassWise::new(probabilities, labels, binning)?.ece(&counts));
    }
    // One class after the other: all of them prepared would be many times as large as the matrix.
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
    /// Bins of equal mass move with the counts, in every class in another way.
    EqualMass(Vec<Binned>),
}

impl<'a, T: Number> ClassWise<'a, T> {
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

    /// Keeps probabilities whose owner does not live as long; they and the labels must have been checked.
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

    /// Class-wise expected calibration error; see [`class_wise_ece`].
    pub fn ece(&self, counts: &Counts) -> f64 {
        let sum: f64 = match &self.bins {
            Bins::EqualWidth(cells) => cells.bins(counts).map(|bins| ece(&bins)).sum(),
            Bins::EqualMass(classes) => classes.iter().map(|class| ece(&class.bins(counts))).sum(),
        };
        sum / self.classes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;

    use super::*;

    #[test]
    fn every_class_counts_the_same() {
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
