//! The contributions of rows to the metrics, prepared once and evaluated for any counts of the rows.
//!
//! The metrics of a split count every row once; a replicate of the bootstrap counts each as often as it was drawn.
//! A replicate costs O(n) and, for the class-wise error, O(n·C) additions, and never touches the logits again.

use std::num::NonZeroU16;

use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;

use crate::calibrator::temperature::Temperature;
use crate::checked;
use crate::error::MetricsError;
use crate::measure::{
    Binned, Binning, ClassRows, ClassWise, Counts, Edges, ReliabilityBin, RiskCoverage, TopLabel,
    brier_of_rows, confidence_gap, ece, mean_confidence, nll_of_rows, smooth_ece,
};

/// The bin to which a confidence on an edge belongs: bins are `[a, b)`, and the last one includes 1.
pub const EDGES: Edges = Edges::LeftClosed;

/// The number of metrics that are computed for any counts.
pub(crate) const COUNT: usize = 11;

/// The number of classes among which the true one must be for [`Metrics::top_5_error`](super::Metrics::top_5_error).
const TOP: usize = 5;

const TEN: Binning = equal_width(10);
const FIFTEEN: Binning = equal_width(15);

const fn equal_width(count: u16) -> Binning {
    Binning::EqualWidth { bins: bins(count), edges: EDGES }
}

/// Returns a number of bins, at least one.
const fn bins(count: u16) -> NonZeroU16 {
    NonZeroU16::MIN.saturating_add(count - 1)
}

/// The contribution of each row.
pub(crate) struct PreparedRows {
    top_label: TopLabel,
    wrong: Vec<bool>,
    missed: Vec<bool>,
    ten: Binned,
    fifteen: Binned,
    equal_mass: Binned,
    class_wise: ClassWise<'static>,
    nll: Vec<f64>,
    brier: Vec<f64>,
    coverage: RiskCoverage,
    pub(crate) classes: ClassRows,
}

impl PreparedRows {
    pub(crate) fn new(
        logits: Matrix<'_>,
        labels: &[u32],
        temperature: Temperature,
    ) -> Result<Self, MetricsError> {
        let top_label = TopLabel::from_logits(logits, labels, temperature.value())?;
        let probabilities = temperature.probabilities(logits);
        let matrix = checked::matrix("probabilities", &probabilities, logits.rows(), logits.width())?;
        let brier = brier_of_rows(matrix, labels)?;
        let missed = |(row, &label): (&[f32], &u32)| rank(row, label as usize) >= TOP;
        let equal_mass = Binning::EqualMass { bins: bins(15) };
        let predicted = logits.iter().map(|row| argmax(row) as u32).collect();
        Ok(Self {
            wrong: top_label.correct().iter().map(|right| !right).collect(),
            missed: logits.iter().zip(labels).map(missed).collect(),
            ten: Binned::new(&top_label, TEN),
            fifteen: Binned::new(&top_label, FIFTEEN),
            equal_mass: Binned::new(&top_label, equal_mass),
            // Checked by the Brier score above.
            class_wise: ClassWise::owning(probabilities, logits.width(), labels, bins(15), EDGES),
            nll: nll_of_rows(logits, labels, temperature.value())?,
            brier,
            coverage: RiskCoverage::new(&top_label),
            classes: ClassRows::new(labels.to_vec(), predicted, logits.width())?,
            top_label,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.top_label.len()
    }

    /// Computes all metrics except the smooth ECE, in the order of [`Metrics`](super::Metrics).
    pub(crate) fn metrics(&self, counts: &Counts) -> [f64; COUNT] {
        let fifteen = self.fifteen.bins(counts);
        [
            counts.share(&self.wrong),
            counts.share(&self.missed),
            mean_confidence(&fifteen),
            confidence_gap(&fifteen),
            ece(&self.ten.bins(counts)),
            ece(&fifteen),
            ece(&self.equal_mass.bins(counts)),
            self.class_wise.ece(counts),
            counts.mean(&self.nll),
            counts.mean(&self.brier),
            self.coverage.aurc(counts),
        ]
    }

    /// Returns the fifteen bins of equal width of rows that all count once.
    pub(crate) fn bins(&self) -> Vec<ReliabilityBin> {
        self.fifteen.bins(&Counts::once(self.len()))
    }

    /// Computes the smooth ECE of rows that all count once. Other counts are not supported: each would need its own
    /// convolution, which costs more than all other metrics together.
    pub(crate) fn smooth_ece(&self) -> f64 {
        smooth_ece(&self.top_label).error
    }
}

/// Counts the classes that are likelier than this one; of equals, the first is the likelier.
fn rank(row: &[f32], class: usize) -> usize {
    let Some(&logit) = row.get(class) else { return row.len() };
    let before = row.iter().take(class).filter(|&&z| z >= logit).count();
    before + row.iter().skip(class + 1).filter(|&&z| z > logit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_classes_the_first_is_likelier() {
        assert_eq!(rank(&[1.0, 3.0, 3.0, 0.0], 2), 1);
        assert_eq!(rank(&[1.0, 3.0, 3.0, 0.0], 1), 0);
    }
}
