//! Predictions divided into bins, for any counts of their rows.

use super::assignment::Assigner;
use crate::measure::{Binning, Counts, ReliabilityBin, TopLabel};

/// Predictions that are divided into bins once, for any counts of their rows.
///
/// ```
/// use calmix_metrics::measure::{Binned, Binning, Counts, TopLabel, ece};
///
/// let predictions = TopLabel::new(vec![0.75, 0.25, 0.75], vec![true, false, false])?;
/// let binned = Binned::new(&predictions, Binning::default());
/// let mut counts = Counts::once(3);
/// assert_eq!(ece(&binned.bins(&counts)), 0.25);
/// counts.draw(&[2, 2]);
/// assert_eq!(ece(&binned.bins(&counts)), 0.75);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Binned {
    probability: Vec<f64>,
    /// One where it happened, otherwise zero.
    happened: Vec<f64>,
    assigner: Assigner,
}

impl Binned {
    /// Prepares the prediction of every row.
    pub fn new(predictions: &TopLabel, binning: Binning) -> Self {
        Self::of_events(predictions.confidence().to_vec(), predictions.correct(), binning)
    }

    /// The same for any event: `happened[i]` was predicted with `probability[i]`.
    pub(in crate::measure) fn of_events(probability: Vec<f64>, happened: &[bool], binning: Binning) -> Self {
        let happened = happened.iter().map(|&happened| f64::from(u8::from(happened))).collect();
        Self { assigner: Assigner::new(&probability, binning), probability, happened }
    }

    /// The bins, in the order of confidence; those of equal width are all there, the empty ones too.
    pub fn bins(&self, counts: &Counts) -> Vec<ReliabilityBin> {
        let assignment = self.assigner.assign(&self.probability, counts);
        let mut sums = vec![BinSums::default(); assignment.ranges.len()];
        if sums.is_empty() {
            return Vec::new();
        }
        // Rows that count zero times add zero: to leave them out would cost a branch that nothing predicts.
        let rows = self.probability.iter().zip(&self.happened).zip(&assignment.bin);
        for (((&p, &happened), &bin), &count) in rows.zip(counts.of_row()) {
            let sums = &mut sums[bin];
            sums.count += count;
            sums.probability += count * p;
            sums.happened += count * happened;
        }
        sums.iter().zip(&assignment.ranges).map(|(sums, &range)| sums.bin(range)).collect()
    }
}

/// What the rows of one bin add up to.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::measure) struct BinSums {
    /// How many there are.
    pub(in crate::measure) count: f64,
    /// Their probabilities.
    pub(in crate::measure) probability: f64,
    /// How often it happened.
    pub(in crate::measure) happened: f64,
}

impl BinSums {
    /// The means, as a bin from `lower` to `upper`.
    pub(in crate::measure) fn bin(&self, (lower, upper): (f64, f64)) -> ReliabilityBin {
        let mean = |sum: f64| if self.count > 0.0 { sum / self.count } else { 0.0 };
        let confidence = mean(self.probability);
        let accuracy = mean(self.happened);
        ReliabilityBin { lower, upper, count: self.count as usize, confidence, accuracy }
    }
}
