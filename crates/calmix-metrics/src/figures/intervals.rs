//! How sure figures are: exact limits of shares, percentile intervals by bootstrap of the others.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use super::rows::{COUNT, PreparedRows};
use super::{ExactLimits, Figures};
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
    /// A thousand replicates, 95 %.
    fn default() -> Self {
        Self { replicates: 1000, level: 0.95 }
    }
}

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// An interval for each of [`Figures`], except the smooth error, whose replicates would take
/// longer than all others together.
///
/// Those of both errors and of the confidence gap are exact ([`ExactLimits`]): a bootstrap of four right answers would
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
    pub error: Limits,
    /// Of the top-5 error, by Clopper and Pearson.
    pub top_5_error: Limits,
    /// Of the mean confidence.
    pub mean_confidence: Limits,
    /// Of mean confidence − accuracy, by the limits of the accuracy.
    pub confidence_gap: Limits,
    /// Of the ECE with 10 bins.
    pub ece_10: Limits,
    /// Of the ECE with 15 bins.
    pub ece_15: Limits,
    /// Of the ECE with bins of equal mass.
    pub adaptive_ece: Limits,
    /// Of the class-wise ECE.
    pub class_wise_ece: Limits,
    /// Of the NLL.
    pub nll: Limits,
    /// Of the Brier score.
    pub brier: Limits,
    /// Of the area under the risk-coverage curve.
    pub aurc: Limits,
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
            for (of_figure, value) in replicates.iter_mut().zip(rows.figures(&counts)) {
                of_figure.push(value);
            }
        }
        let mut limits = [Limits { low: 0.0, high: 0.0 }; COUNT];
        for (limits, of_figure) in limits.iter_mut().zip(&replicates) {
            let Ok((low, high)) = percentile_interval(of_figure, how.level) else { return Ok(None) };
            *limits = Limits { low, high };
        }
        let [_, _, mean_confidence, _, ece_10, ece_15, rest @ ..] = limits;
        let exact = ExactLimits::of(&Figures::without_smooth(rows), rows.len() as u64, how.level);
        let Some(ExactLimits { error, top_5_error, confidence_gap }) = exact else { return Ok(None) };
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
