//! Predictions divided into bins: for any counts of their rows, or as sums that are added batch by batch.

use super::FIFTEEN;
use super::assignment::{Assigner, EqualWidth};
use crate::measure::{Binning, Counts, Edges, ReliabilityBin, TopLabel};

/// The number of bins of [`BinTotals`].
const BINS: usize = FIFTEEN.get() as usize;

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
    /// 1 if the event happened, otherwise 0.
    happened: Vec<f64>,
    assigner: Assigner,
}

impl Binned {
    /// Prepares the prediction of every row.
    pub fn new(predictions: &TopLabel, binning: Binning) -> Self {
        Self::of_events(predictions.confidence().to_vec(), predictions.correct(), binning)
    }

    /// Prepares any event: `happened[i]` was predicted with `probability[i]`.
    pub(in crate::measure) fn of_events(probability: Vec<f64>, happened: &[bool], binning: Binning) -> Self {
        let happened = happened.iter().map(|&happened| f64::from(u8::from(happened))).collect();
        Self { assigner: Assigner::new(&probability, binning), probability, happened }
    }

    /// Returns the bins in the order of confidence; those of equal width include the empty ones.
    pub fn bins(&self, counts: &Counts) -> Vec<ReliabilityBin> {
        let assignment = self.assigner.assign(&self.probability, counts);
        let mut sums = vec![BinSums::default(); assignment.ranges.len()];
        if sums.is_empty() {
            return Vec::new();
        }
        // Rows that count zero times add zero: leaving them out would cost a branch that cannot be predicted.
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

/// Sums over the rows of one bin.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::measure) struct BinSums {
    pub(in crate::measure) count: f64,
    pub(in crate::measure) probability: f64,
    pub(in crate::measure) happened: f64,
}

impl BinSums {
    /// Returns the means, as a bin from `lower` to `upper`.
    pub(in crate::measure) fn bin(&self, (lower, upper): (f64, f64)) -> ReliabilityBin {
        let mean = |sum: f64| if self.count > 0.0 { sum / self.count } else { 0.0 };
        let confidence = mean(self.probability);
        let accuracy = mean(self.happened);
        ReliabilityBin { lower, upper, count: self.count as usize, confidence, accuracy }
    }
}

/// Divides the predictions into bins, in the order of confidence.
///
/// Bins of equal width include the empty ones.
pub fn reliability_bins(predictions: &TopLabel, binning: Binning) -> Vec<ReliabilityBin> {
    Binned::new(predictions, binning).bins(&Counts::once(predictions.len()))
}

/// Totals of predictions in the bins of [`Binning::default`](crate::measure::Binning::default): 15 of equal width, left closed.
///
/// Batches and processes each contribute a list of [`WIDTH`](Self::WIDTH) numbers; the totals of all predictions are
/// the sum of these lists.
///
/// ```
/// use calmix_metrics::measure::{BinTotals, ece};
///
/// let mut totals = BinTotals::default();
/// totals.add(0.75, true);
/// let mut more = BinTotals::default();
/// more.add(0.75, false);
/// totals.add_numbers(&more.numbers());
/// assert_eq!(ece(&totals.bins()), 0.25);
/// ```
#[derive(Debug, Clone)]
pub struct BinTotals {
    widths: EqualWidth,
    sums: Vec<BinSums>,
}

impl BinTotals {
    /// The length of the list of numbers: count, sum of confidences and number of right predictions of each bin.
    pub const WIDTH: usize = 3 * BINS;

    /// Adds a prediction.
    pub fn add(&mut self, confidence: f64, correct: bool) {
        let bin = self.widths.bin(confidence);
        if let Some(sums) = self.sums.get_mut(bin) {
            sums.count += 1.0;
            sums.probability += confidence;
            sums.happened += f64::from(u8::from(correct));
        }
    }

    /// Writes the sums as one list, so that the lists of several batches can be added element by element.
    pub fn numbers(&self) -> Vec<f64> {
        self.sums.iter().flat_map(|sums| [sums.count, sums.probability, sums.happened]).collect()
    }

    /// Adds a list that [`numbers`](Self::numbers) made; missing numbers count as zero.
    pub fn add_numbers(&mut self, numbers: &[f64]) {
        for (sums, &[count, probability, happened]) in self.sums.iter_mut().zip(numbers.as_chunks().0) {
            sums.count += count;
            sums.probability += probability;
            sums.happened += happened;
        }
    }

    /// Returns the bins, including empty ones.
    pub fn bins(&self) -> Vec<ReliabilityBin> {
        self.sums.iter().zip(&self.widths.ranges).map(|(sums, &range)| sums.bin(range)).collect()
    }
}

impl Default for BinTotals {
    fn default() -> Self {
        Self { widths: EqualWidth::new(FIFTEEN, Edges::LeftClosed), sums: vec![BinSums::default(); BINS] }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    fn bins(n: u16) -> NonZeroU16 {
        NonZeroU16::new(n).unwrap()
    }

    fn all_right(confidence: &[f64], binning: Binning) -> Vec<ReliabilityBin> {
        let predictions = TopLabel::new(confidence.to_vec(), vec![true; confidence.len()]).unwrap();
        reliability_bins(&predictions, binning)
    }

    fn counts(confidence: &[f64], binning: Binning) -> Vec<usize> {
        all_right(confidence, binning).iter().map(|bin| bin.count).collect()
    }

    #[test]
    fn edges_belong_to_the_configured_bin() {
        let confidence = [0.0, 0.25, 0.5, 0.75, 1.0];
        let count = |edges| counts(&confidence, Binning::EqualWidth { bins: bins(4), edges });
        assert_eq!(count(Edges::LeftClosed), [1, 1, 1, 2]);
        assert_eq!(count(Edges::RightClosed), [2, 1, 1, 1]);
        assert_eq!(count(Edges::Torchmetrics), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn the_edges_are_the_nearest_numbers_to_the_fractions() {
        for n in [3, 7, 10, 15, 20, 49, 100] {
            let confidence: Vec<f64> = (0..n).map(|i| f64::from(i) / f64::from(n)).collect();
            let edges = Edges::LeftClosed;
            let binning = Binning::EqualWidth { bins: bins(n), edges };
            assert_eq!(counts(&confidence, binning), vec![1; usize::from(n)]);
        }
    }

    #[test]
    fn bins_of_equal_mass_keep_ties_together() {
        let count = |confidence: &[f64], n| counts(confidence, Binning::EqualMass { bins: bins(n) });
        assert_eq!(count(&[0.6, 0.1, 0.5, 0.2, 0.4, 0.3], 3), [2, 2, 2]);
        assert_eq!(count(&[0.1, 0.2, 0.3, 0.4, 0.5], 2), [3, 2]);
        // Ranks 1 to 4 share the middle 2.5, of the first half.
        assert_eq!(count(&[0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.4], 2), [5, 2]);
        assert_eq!(count(&[0.9; 5], 4), [5]);
        assert_eq!(count(&[0.3, 0.7], 15), [1, 1]);
        assert_eq!(count(&[], 3), [0; 0]);
        let found = all_right(&[0.4, 0.1, 0.3, 0.2], Binning::EqualMass { bins: bins(2) });
        assert_eq!((found[0].lower, found[0].upper), (0.1, 0.2));
        assert_eq!((found[1].lower, found[1].upper), (0.3, 0.4));
    }

    #[test]
    fn bins_hold_means() {
        let predictions = TopLabel::new(vec![0.6, 0.7, 0.1], vec![true, false, false]).unwrap();
        let edges = Edges::LeftClosed;
        let found = reliability_bins(&predictions, Binning::EqualWidth { bins: bins(2), edges });
        assert_eq!((found[0].count, found[0].accuracy, found[0].confidence), (1, 0.0, 0.1));
        assert_eq!((found[1].count, found[1].accuracy), (2, 0.5));
        assert!((found[1].gap() + 0.15).abs() < 1e-15);
    }

    #[test]
    fn binnings_are_written_in_kebab_case() {
        let binning = Binning::EqualWidth { bins: bins(10), edges: Edges::RightClosed };
        let written = serde_json::to_string(&binning).unwrap();
        assert_eq!(written, r#"{"equal-width":{"bins":10,"edges":"right-closed"}}"#);
        assert_eq!(serde_json::from_str::<Binning>(&written).unwrap(), binning);
        assert!(serde_json::from_str::<Binning>(r#"{"equal-mass":{"bins":0}}"#).is_err());
    }
}
