//! The alarm of `calmix monitor`: whether the batches of a model are still like its reference.
//!
//! Two gamblers bet that they are not: one on the ranks of single rows ([`TestMartingale`]), which finds unusual rows, and one on the
//! means of batches ([`MeansMartingale`]), which finds that all rows have moved a little. Each reaches 200 with a probability of at
//! most 0.5% while nothing changes, so half of the larger capital reaches 100 with at most 1%. (Their mean would need a common
//! history: ranks are fair bets for those who do not see the rows themselves.)

use calmix_core::rng::Seed;

use super::batch_means::MeansMartingale;
use super::capital::ALARM;
use super::detector::ShiftDetector;
use super::martingale::TestMartingale;
use super::sums::{BatchSums, P_BINS};
use crate::error::MetricsError;

/// What has changed by the larger capital.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Single rows are more, or less, unusual than those of the reference.
    Rows,
    /// The mean of the rows has moved.
    Mean,
}

/// The alarm with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct ShiftAlarm {
    rows: TestMartingale,
    means: MeansMartingale,
}

impl ShiftAlarm {
    /// Starts with the reference of a model; `None` if it has no features.
    ///
    /// # Errors
    /// Never for the reference of a detector.
    pub fn new(detector: &ShiftDetector) -> Result<Option<Self>, MetricsError> {
        let Some((means, samples)) = detector.means_martingale() else { return Ok(None) };
        Ok(Some(Self { rows: TestMartingale::new(&reference_scores(samples), Seed(0))?, means }))
    }

    /// Bets on the rows of a batch. Its sums must have the shape of those of the detector.
    ///
    /// # Errors
    /// Never for sums of the detector.
    pub fn update(&mut self, sums: &BatchSums) -> Result<(), MetricsError> {
        self.rows.update(&scores(sums))?;
        self.means.update(sums);
        Ok(())
    }

    /// Returns the natural logarithm of the capital now: half of the larger of both.
    pub fn ln_capital(&self) -> f64 {
        self.rows.ln_capital().max(self.means.ln_capital()) - core::f64::consts::LN_2
    }

    /// Returns the natural logarithm of the highest capital so far.
    pub fn ln_highest(&self) -> f64 {
        self.rows.ln_highest().max(self.means.ln_highest()) - core::f64::consts::LN_2
    }

    /// Returns whether the capital has ever reached [`ALARM`].
    pub fn is_alarm(&self) -> bool {
        self.ln_highest() >= libm::log(ALARM)
    }

    /// Returns what has changed by the larger of the highest capitals.
    pub fn change(&self) -> Change {
        if self.means.ln_highest() > self.rows.ln_highest() { Change::Mean } else { Change::Rows }
    }
}

/// Returns the scores of the reference: the bins of its p-values.
///
/// A new sample falls between any two of n reference samples, or outside of all, with the same probability, so there are n + 1
/// equal p-values. As a sample's bin depends on the reference, so must the weight of the bin: then each new sample has a uniform rank
/// among the reference and all earlier ones, whatever their number (Pólya's urn).
fn reference_scores(samples: usize) -> Vec<f64> {
    let p_values = (1..=samples + 1).map(|rank| rank as f64 / (samples + 1) as f64);
    p_values.map(|p| score(((p * P_BINS as f64).ceil() as usize).saturating_sub(1).min(P_BINS - 1))).collect()
}

/// Returns the scores of the rows of a batch.
fn scores(sums: &BatchSums) -> Vec<f64> {
    let bins = sums.p_values.iter().enumerate();
    bins.flat_map(|(bin, &count)| core::iter::repeat_n(score(bin), count as usize)).collect()
}

/// Returns the score of a bin of p-values: the lower the p-value, the higher.
fn score(bin: usize) -> f64 {
    (P_BINS - bin) as f64
}

#[cfg(test)]
mod tests;
