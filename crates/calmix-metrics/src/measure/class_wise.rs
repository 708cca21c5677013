//! The calibration of every class's probability, not only of the predicted class's.

mod cells;

use calmix_core::matrix::Matrix;

use super::bins::EqualWidth;
use super::{Binned, Binning, Counts, ece};
use crate::checked;
use crate::error::MetricsError;
use cells::Cells;

/// Class-wise expected calibration error: the mean over classes of the binned error of that class's
/// probability against "this is the class".
///
/// Kull et al., "Beyond temperature scaling", 2019; the static calibration error of Nixon et al., "Measuring
/// calibration in deep learning", 2019. With many classes almost all probabilities are near zero and well
/// calibrated, so the metric falls with the number of classes: compare it only for the same number of classes.
///
/// # Errors
/// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
pub fn class_wise_ece(
    probabilities: Matrix<'_>,
    labels: &[u32],
    binning: Binning,
) -> Result<f64, MetricsError> {
    Ok(ClassWise::new(probabilities, labels, binning)?.ece(&Counts::once(labels.len())))
}

/// The probabilities of all classes, divided into bins once, for any counts of their rows.
#[derive(Debug, Clone)]
pub struct ClassWise {
    classes: usize,
    bins: Bins,
}

#[derive(Debug, Clone)]
enum Bins {
    EqualWidth(Cells),
    /// Bins of equal mass move with the counts, in every class in another way.
    EqualMass(Vec<Binned>),
}

impl ClassWise {
    /// Prepares the probabilities of every class.
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
    pub fn new(probabilities: Matrix<'_>, labels: &[u32], binning: Binning) -> Result<Self, MetricsError> {
        checked::probabilities(probabilities, labels)?;
        let of_class = |class| {
            let probability = probabilities.iter().map(|row| f64::from(row[class])).collect();
            let happened: Vec<bool> = labels.iter().map(|&label| label as usize == class).collect();
            Binned::of_events(probability, &happened, binning)
        };
        let classes = probabilities.width();
        let bins = match binning {
            Binning::EqualWidth { bins, edges } => {
                Bins::EqualWidth(Cells::new(probabilities, labels, EqualWidth::new(bins, edges)))
            }
            Binning::EqualMass { .. } => Bins::EqualMass((0..classes).map(of_class).collect()),
        };
        Ok(Self { classes, bins })
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
    use super::*;

    #[test]
    fn every_class_counts_the_same() {
        // Class 0: 0.75 once right, once wrong; class 1 the complement; class 2 never predicted, never true.
        let p = [0.75, 0.25, 0.0, 0.75, 0.25, 0.0];
        let p = Matrix::new(&p, 2, 3).unwrap();
        let error = class_wise_ece(p, &[0, 1], Binning::default()).unwrap();
        assert!((error - (0.25 + 0.25 + 0.0) / 3.0).abs() < 1e-15);
    }
}
