//! The kind of calibrator for some held-out labels: the simplest one, unless they clearly favour another.

use calmix_core::matrix::Matrix;
use serde::{Deserialize, Serialize};

use super::any_calibrator::{Calibrator, CalibratorKind};
use super::cross_fit::CrossFit;
use super::temperature::{Temperature, TemperaturePrior};
use crate::checked;
use crate::error::MetricsError;
use crate::measure::nll_of_rows;

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
    pub fn of(logits: Matrix<'_>, labels: &[u32]) -> Result<Self, MetricsError> {
        Self::of_unless(logits, labels, &|| false)
    }

    /// Chooses as [`of`](Self::of) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`of`](Self::of), and [`MetricsError::Stopped`].
    pub fn of_unless(
        logits: Matrix<'_>,
        labels: &[u32],
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let cross_fit = |kind| {
            let fit = |logits: Matrix<'_>, labels: &[u32]| Calibrator::fit_unless(kind, logits, labels, stop);
            CrossFit::in_five(fit, logits, labels)
        };
        let simplest = CalibratorKind::Temperature;
        let mut best = Self { kind: simplest, cross_fit: cross_fit(simplest)?, tried: Vec::new() };
        best.tried.push(TriedCalibrator { kind: simplest, nll: best.cross_fit.mean_nll() });
        for kind in [CalibratorKind::Vector, CalibratorKind::Isotonic] {
            if labels.len() < kind.least_labels() || logits.data().len() > MOST_NUMBERS {
                continue;
            }
            let other = cross_fit(kind)?;
            best.tried.push(TriedCalibrator { kind, nll: other.mean_nll() });
            if is_clearly_lower(&other.nll, &best.cross_fit.nll) {
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
    logits: Matrix<'_>,
    labels: &[u32],
    prior: TemperaturePrior,
    stop: &dyn Fn() -> bool,
) -> Result<Calibrator, MetricsError> {
    let fit = |logits: Matrix<'_>, labels: &[u32]| -> Result<Calibrator, MetricsError> {
        checked::not_stopped(stop)?;
        Ok(Calibrator::Temperature { temperature: Temperature::fit_with_prior(logits, labels, prior)? })
    };
    let cross_fit = CrossFit::in_five(fit, logits, labels)?;
    let uncalibrated = nll_of_rows(logits, labels, 1.0)?;
    if is_clearly_lower(&cross_fit.nll, &uncalibrated) {
        fit(logits, labels)
    } else {
        Ok(Calibrator::IDENTITY)
    }
}

/// Returns whether `these` are lower than `those` by more than a standard error of the mean difference.
fn is_clearly_lower(these: &[f64], those: &[f64]) -> bool {
    is_lower_by(1.0, these, those)
}

/// Returns whether `these` are lower than `those` by more than that many standard errors of the mean difference.
pub fn is_lower_by(standard_errors: f64, these: &[f64], those: &[f64]) -> bool {
    let n = these.len().min(those.len()) as f64;
    let differences = || those.iter().zip(these).map(|(those, these)| those - these);
    let mean = differences().sum::<f64>() / n;
    let variance = differences().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    mean > standard_errors * (variance / n).sqrt()
}
