//! How sure metrics are: exact interval of shares, percentile intervals by bootstrap of the others.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use super::rows::{COUNT, PreparedRows};
use super::{ExactIntervals, Metrics};
use crate::calibrator::temperature::Temperature;
use crate::error::CalibrationError;
use crate::measure::Counts;
use crate::stats::{percentile_interval, resample};

/// How often to resample, and for which level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// How many replicates.
    pub replicates: usize,
    /// The level of the intervals, between 0 and 1.
    pub level: f64,
}

impl Default for Resampling {
    /// A thousand replicates, 95%.
    fn default() -> Self {
        Self { replicates: 1000, level: 0.95 }
    }
}

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// An interval for each of [`Metrics`], except the smooth error, whose replicates would take
/// longer than all others together.
///
/// Those of both errors and of the confidence gap are exact ([`ExactIntervals`]): a bootstrap of four right answers would
/// claim that none can be wrong. The others are percentiles of the bootstrap.
///
/// Binned errors are biased upwards on few samples, and more so in a replicate: their intervals sit high.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intervals {
    /// The level of every interval.
    pub level: f64,
    /// How many replicates they rest on.
    pub replicates: u64,
    /// Of the error, by Clopper and Pearson.
    pub error: Interval,
    /// Of the top-5 error, by Clopper and Pearson.
    pub top_5_error: Interval,
    /// Of the mean confidence.
    pub mean_confidence: Interval,
    /// Of mean confidence − accuracy, by the interval of the accuracy.
    pub confidence_gap: Interval,
    /// Of the ECE with 10 bins.
    pub ece_10: Interval,
    /// Of the ECE with 15 bins.
    pub ece_15: Interval,
    /// Of the ECE with bins of equal mass.
    pub adaptive_ece: Interval,
    /// Of the class-wise ECE.
    pub class_wise_ece: Interval,
    /// Of the NLL.
    pub nll: Interval,
    /// Of the Brier score.
    pub brier: Interval,
    /// Of the area under the risk-coverage curve.
    pub aurc: Interval,
}

/// The caller asked to stop: there are no intervals.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Intervals {
    /// Resamples the rows; none where fewer than two rows, no replicates or an impossible level leave nothing to
    /// say.
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, or a logit is not finite.
    pub fn of(
        logits: Matrix<'_>,
        labels: &[u32],
        temperature: Temperature,
        how: Resampling,
        seed: Seed,
    ) -> Result<Option<Self>, CalibrationError> {
        let rows = PreparedRows::new(logits, labels, temperature)?;
        Ok(Self::of_rows(&rows, how, seed, &mut || false).unwrap_or_default())
    }

    /// As [`of`](Self::of), unless `stop` says so before a replicate.
    pub(crate) fn of_rows(
        rows: &PreparedRows,
        how: Resampling,
        seed: Seed,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>, Stopped> {
        if rows.len() < 2 {
            return Ok(None);
        }
        let mut drawn = vec![0; rows.len()];
        let mut counts = Counts::once(rows.len());
        let mut replicates: [Vec<f64>; COUNT] = std::array::from_fn(|_| Vec::with_capacity(how.replicates));
        for replicate in 0..how.replicates as u64 {
            if stop() {
                return Err(Stopped);
            }
            resample(seed, replicate, &mut drawn);
            counts.draw(&drawn);
            for (of_metric, value) in replicates.iter_mut().zip(rows.metrics(&counts)) {
                of_metric.push(value);
            }
        }
        let mut interval = [Interval { low: 0.0, high: 0.0 }; COUNT];
        for (interval, of_metric) in interval.iter_mut().zip(&replicates) {
            let Ok((low, high)) = percentile_interval(of_metric, how.level) else { return Ok(None) };
            *interval = Interval { low, high };
        }
        let [_, _, mean_confidence, _, ece_10, ece_15, rest @ ..] = interval;
        let exact = ExactIntervals::of(&Metrics::without_smooth(rows), rows.len() as u64, how.level);
        let Some(ExactIntervals { error, top_5_error, confidence_gap }) = exact else { return Ok(None) };
        let [adaptive_ece, class_wise_ece, nll, brier, aurc] = rest;
        Ok(Some(Self {
            level: how.level,
            replicates: how.replicates as u64,
            error,
            top_5_error,
            mean_confidence,
            confidence_gap,
            ece_10,
            ece_15,
            adaptive_ece,
            class_wise_ece,
            nll,
            brier,
            aurc,
        }))
    }
}

#[cfg(test)]
mod tests;
