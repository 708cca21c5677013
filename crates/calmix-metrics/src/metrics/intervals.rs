//! Confidence intervals of metrics: exact intervals for shares, with any number of images; bootstrap percentile intervals for
//! the others.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use super::Metrics;
use super::rows::{COUNT, PreparedRows};
use crate::calibrator::temperature::Temperature;
use crate::checked;
use crate::error::MetricsError;
use crate::groups::rows_of_groups;
use crate::measure::Counts;
use crate::stats::{clopper_pearson, percentile_interval, resample};

/// The smallest number of images for which an error is compared: its 95% interval is then at most about 28 points wide.
pub const MIN_SAMPLES_TO_ASSESS: u64 = 50;
/// The smallest number of images for which an ECE is shown: with fifteen bins and fifty images, a calibrated model has a
/// measured ECE of 12.7%, where the true value is 1.5%.
pub const MIN_SAMPLES_FOR_ECE: u64 = 1_000;
/// The confidence level of every interval that is printed.
pub const LEVEL: f64 = 0.95;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The exact intervals of the metrics that are shares of the images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactIntervals {
    /// The Clopper–Pearson interval of the error.
    pub error: Interval,
    /// The Clopper–Pearson interval of the top-5 error.
    pub top_5_error: Interval,
    /// The interval of the confidence gap: the mean confidence minus the interval of the accuracy.
    pub confidence_gap: Interval,
}

impl ExactIntervals {
    /// Computes the intervals of metrics on `samples` images; `None` without images, or if the level is not in (0, 1).
    pub fn of(metrics: &Metrics, samples: u64, level: f64) -> Option<Self> {
        let n = usize::try_from(samples).ok()?;
        let interval = |share: f64| {
            let interval = clopper_pearson((share * n as f64).round() as usize, n, level).ok()?;
            Some(Interval { low: interval.low, high: interval.high })
        };
        let error = interval(metrics.error)?;
        let gap = |error: f64| metrics.mean_confidence - (1.0 - error);
        let confidence_gap = Interval { low: gap(error.low), high: gap(error.high) };
        Some(Self { error, top_5_error: interval(metrics.top_5_error)?, confidence_gap })
    }
}

/// The number of bootstrap replicates and the confidence level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// The number of replicates.
    pub replicates: usize,
    /// The level of the intervals, between 0 and 1.
    pub level: f64,
}

impl Default for Resampling {
    /// Returns a thousand replicates at 95%.
    fn default() -> Self {
        Self { replicates: 1000, level: 0.95 }
    }
}

impl Resampling {
    /// Computes the bootstrap percentile interval of a measure of `rows` rows, in the same way as [`Intervals`].
    ///
    /// ```
    /// use calmix_core::rng::Seed;
    /// use calmix_metrics::measure::{Binned, Binning, TopLabel, ece};
    /// use calmix_metrics::metrics::Resampling;
    ///
    /// let predictions = TopLabel::new(vec![0.9; 40], (0..40).map(|i| i % 4 > 0).collect())?;
    /// let binned = Binned::new(&predictions, Binning::default());
    /// let interval = Resampling::default().interval(40, Seed(0), |counts| ece(&binned.bins(counts)))?;
    /// assert!(interval.low < 0.15 && interval.high > 0.15);
    /// # Ok::<(), calmix_metrics::error::MetricsError>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer than two rows, no replicates, a measure that is not finite, or a level that is not in (0, 1).
    pub fn interval(
        self,
        rows: usize,
        seed: Seed,
        measure: impl Fn(&Counts) -> f64,
    ) -> Result<Interval, MetricsError> {
        if rows < 2 {
            return Err(MetricsError::TooFew { needed: 2, got: rows });
        }
        let mut drawn = vec![0; rows];
        let mut counts = Counts::once(rows);
        let replicates: Vec<f64> = (0..self.replicates as u64)
            .map(|replicate| {
                resample(seed, replicate, &mut drawn);
                counts.draw(&drawn);
                measure(&counts)
            })
            .collect();
        let (low, high) = percentile_interval(&replicates, self.level)?;
        Ok(Interval { low, high })
    }
}

/// A confidence interval for each of [`Metrics`], except the smooth ECE, whose replicates would take
/// longer than all others together.
///
/// Those of both errors and of the confidence gap are exact ([`ExactIntervals`]): a bootstrap of four right answers would
/// give an interval of zero width. The others are bootstrap percentile intervals.
///
/// Binned errors are biased upwards on few samples, and more so in a replicate, so their intervals are too high. A replicate may
/// lack a rare class, and a class whose few samples are all right has no spread: those of the balanced error and of macro F1 are
/// then too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intervals {
    /// The level of every interval.
    pub level: f64,
    /// The number of bootstrap replicates.
    pub replicates: u64,
    /// The interval of the error (Clopper–Pearson).
    pub error: Interval,
    /// The interval of the top-5 error (Clopper–Pearson).
    pub top_5_error: Interval,
    /// The interval of the mean confidence.
    pub mean_confidence: Interval,
    /// The interval of mean confidence − accuracy, from the interval of the accuracy.
    pub confidence_gap: Interval,
    /// The interval of the ECE with 10 bins.
    pub ece_10: Interval,
    /// The interval of the ECE with 15 bins.
    pub ece_15: Interval,
    /// The interval of the ECE with bins of equal mass.
    pub adaptive_ece: Interval,
    /// The interval of the class-wise ECE.
    pub class_wise_ece: Interval,
    /// The interval of the NLL.
    pub nll: Interval,
    /// The interval of the Brier score.
    pub brier: Interval,
    /// The interval of the area under the risk-coverage curve.
    pub aurc: Interval,
    /// The interval of the balanced error. `None` in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balanced_error: Option<Interval>,
    /// The interval of macro F1. `None` in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macro_f1: Option<Interval>,
}

impl Intervals {
    /// Computes the intervals by resampling the rows; `None` with fewer than two rows, without replicates, or if the level
    /// is not in (0, 1).
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, or a logit is not finite.
    pub fn of(
        logits: Matrix<'_>,
        labels: &[u32],
        temperature: Temperature,
        how: Resampling,
        seed: Seed,
    ) -> Result<Option<Self>, MetricsError> {
        let rows = PreparedRows::new(logits, labels, temperature)?;
        Self::of_rows(&rows, &[], how, seed, &|| false)
    }

    /// Computes the intervals as [`of`](Self::of) does, unless `stop` returns true before a replicate. Whole
    /// [groups](crate::groups) are drawn. The exact intervals are those of as many samples as there are groups, as if the samples
    /// of a group were copies: exact if they are, otherwise too wide.
    pub(crate) fn of_rows(
        rows: &PreparedRows,
        groups: &[u32],
        how: Resampling,
        seed: Seed,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, MetricsError> {
        let rows_of_groups = rows_of_groups(groups, rows.len());
        if rows_of_groups.len() < 2 {
            return Ok(None);
        }
        let mut drawn = vec![0; rows_of_groups.len()];
        let mut drawn_rows = Vec::with_capacity(rows.len());
        let mut counts = Counts::once(rows.len());
        let mut replicates: [Vec<f64>; COUNT] = std::array::from_fn(|_| Vec::with_capacity(how.replicates));
        let mut balanced_errors = Vec::with_capacity(how.replicates);
        let mut macro_f1 = Vec::with_capacity(how.replicates);
        for replicate in 0..how.replicates as u64 {
            checked::not_stopped(stop)?;
            resample(seed, replicate, &mut drawn);
            drawn_rows.clear();
            drawn_rows.extend(drawn.iter().flat_map(|&group| &rows_of_groups[group]));
            counts.draw(&drawn_rows);
            if let Some(means) = rows.classes.means(&counts) {
                balanced_errors.push(means.balanced_error);
                macro_f1.push(means.macro_f1);
            }
            for (of_metric, value) in replicates.iter_mut().zip(rows.metrics(&counts)) {
                of_metric.push(value);
            }
        }
        let percentiles = |of_metric: &[f64]| {
            let (low, high) = percentile_interval(of_metric, how.level).ok()?;
            Some(Interval { low, high })
        };
        let mut interval = [Interval { low: 0.0, high: 0.0 }; COUNT];
        for (interval, of_metric) in interval.iter_mut().zip(&replicates) {
            let Some(found) = percentiles(of_metric) else { return Ok(None) };
            *interval = found;
        }
        let [_, _, mean_confidence, _, ece_10, ece_15, rest @ ..] = interval;
        let exact =
            ExactIntervals::of(&Metrics::without_smooth(rows), rows_of_groups.len() as u64, how.level);
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
            balanced_error: percentiles(&balanced_errors),
            macro_f1: percentiles(&macro_f1),
        }))
    }
}

#[cfg(test)]
mod tests;
