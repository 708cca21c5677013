//! The kind of calibrator for some held-out labels: the simplest one, unless they clearly favour another.

use serde::{Deserialize, Serialize};

use super::any_calibrator::{Calibrator, CalibratorKind};
use super::cross_fit::CrossFit;
use super::temperature::{Temperature, TemperaturePrior};
use crate::checked;
use crate::error::MetricsError;
use crate::groups::{group_count, group_means};
use crate::measure::nll_of_rows;
use crate::predictions::LabelledLogits;

/// The number of logits (labels times classes) up to which every kind is tried; above it, only a temperature.
const MOST_NUMBERS: usize = 2_000_000;

/// A kind of calibrator that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TriedCalibrator {
    /// The kind that was tried.
    pub kind: CalibratorKind,
    /// Its mean NLL on labels that did not fit it.
    pub nll: f64,
}

/// The chosen kind of calibrator, by the NLL of each kind on labels that did not fit it.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibratorChoice {
    /// The kind to fit.
    pub kind: CalibratorKind,
    /// Its cross-fit on the labels.
    pub cross_fit: CrossFit,
    /// Every kind for which there were enough labels.
    pub tried: Vec<TriedCalibrator>,
}

impl CalibratorChoice {
    /// Cross-fits every kind for which there are [enough labels](CalibratorKind::least_labels), the simplest first. A kind
    /// replaces a simpler one if its NLL is lower by more than a standard error.
    ///
    /// # Errors
    /// If there are fewer than two labels, labels and logits do not match, or a logit is not finite.
    pub fn of(rows: LabelledLogits<'_>) -> Result<Self, MetricsError> {
        Self::of_unless(rows, &|| false)
    }

    /// Chooses as [`of`](Self::of) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`of`](Self::of), and [`MetricsError::Stopped`].
    pub fn of_unless(rows: LabelledLogits<'_>, stop: &dyn Fn() -> bool) -> Result<Self, MetricsError> {
        let cross_fit = |kind| {
            let fit = |rows: LabelledLogits<'_>| Calibrator::fit_unless(kind, rows.logits, rows.labels, stop);
            CrossFit::in_five(fit, rows)
        };
        let labels = group_count(rows.groups, rows.labels.len());
        let simplest = CalibratorKind::Temperature;
        let mut best = Self { kind: simplest, cross_fit: cross_fit(simplest)?, tried: Vec::new() };
        best.tried.push(TriedCalibrator { kind: simplest, nll: best.cross_fit.mean_nll() });
        for kind in [CalibratorKind::Vector, CalibratorKind::Isotonic] {
            if labels < kind.least_labels() || rows.logits.data().len() > MOST_NUMBERS {
                continue;
            }
            let other = cross_fit(kind)?;
            best.tried.push(TriedCalibrator { kind, nll: other.mean_nll() });
            if is_clearly_lower(&other.nll, &best.cross_fit.nll, rows.groups) {
                best.kind = kind;
                best.cross_fit = other;
            }
        }
        Ok(best)
    }
}

/// Returns the most probable temperature if it lowers the NLL of labels that did not fit it by more than a standard error;
/// otherwise `None`, which means 1.
///
/// A temperature fitted on few labels often raises the NLL of other labels.
///
/// # Errors
/// If there are fewer than two labels, labels and logits do not match, a logit is not finite, or `stop` returns true.
pub fn temperature_where_it_helps(
    rows: LabelledLogits<'_>,
    prior: TemperaturePrior,
    stop: &dyn Fn() -> bool,
) -> Result<Calibrator, MetricsError> {
    let fit = |rows: LabelledLogits<'_>| -> Result<Calibrator, MetricsError> {
        checked::not_stopped(stop)?;
        let temperature = Temperature::fit_with_prior(rows.logits, rows.labels, prior)?;
        Ok(Calibrator::Temperature { temperature })
    };
    let cross_fit = CrossFit::in_five(fit, rows)?;
    let uncalibrated = nll_of_rows(rows.logits, rows.labels, 1.0)?;
    if is_clearly_lower(&cross_fit.nll, &uncalibrated, rows.groups) {
        fit(rows)
    } else {
        Ok(Calibrator::IDENTITY)
    }
}

/// Returns whether `these` are lower than `those` by more than a standard error of the mean difference.
fn is_clearly_lower(these: &[f64], those: &[f64], groups: &[u32]) -> bool {
    is_lower_by(1.0, these, those, groups)
}

/// Returns whether `these` are lower than `those` by more than that many standard errors of the mean difference. A
/// [group](crate::groups) counts once, with its mean.
pub fn is_lower_by(standard_errors: f64, these: &[f64], those: &[f64], groups: &[u32]) -> bool {
    let differences: Vec<f64> = those.iter().zip(these).map(|(those, these)| those - these).collect();
    let differences = group_means(&differences, groups);
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    mean > standard_errors * (variance / n).sqrt()
}
