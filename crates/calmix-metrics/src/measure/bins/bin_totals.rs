//! Reliability bins as sums that can be added, for predictions that come batch by batch from one process or many.

use super::assignment::EqualWidth;
use super::binned::BinSums;
use super::binning::FIFTEEN;
use crate::measure::{Edges, ReliabilityBin};

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

    /// Returns it as a list of numbers that can be added.
    pub fn numbers(&self) -> Vec<f64> {
        self.sums.iter().flat_map(|sums| [sums.count, sums.probability, sums.happened]).collect()
    }

    /// Adds such a list; missing numbers count as zero.
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

const BINS: usize = FIFTEEN.get() as usize;

impl Default for BinTotals {
    fn default() -> Self {
        Self { widths: EqualWidth::new(FIFTEEN, Edges::LeftClosed), sums: vec![BinSums::default(); BINS] }
    }
}
