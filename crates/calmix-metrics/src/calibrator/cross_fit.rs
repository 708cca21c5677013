//! Cross-fitting: evaluates a calibrator on the labels that fitted it, if there is no second set of labels, and chooses the
//! kind of calibrator by it: the simplest one, unless the labels clearly favour another.
//!
//! Every sample is calibrated by a fit without its fold. The calibrator to use is then the one fitted on all
//! samples, as is usual after cross-validation; the metrics of the cross-fitted rows estimate its gain.
//!
//! The logits must come from a network that was not trained on these labels. Labels that it has memorised give the
//! lowest temperature in every fold, and cross-fitting cannot detect that.

use calmix_core::rng::{Domain, Seed};
use serde::{Deserialize, Serialize};

use super::temperature::{Temperature, TemperaturePrior};
use super::{Calibrator, CalibratorKind};
use crate::checked;
use crate::error::MetricsError;
use crate::groups::{group_count, group_means, rows_of_groups, select_groups};
use crate::measure::nll_of_rows;
use crate::predictions::LabelledLogits;

/// Cross-fitted rows, each calibrated by a fit without it.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossFit {
    /// For each fold, the calibrator fitted without its samples.
    pub folds: Vec<Calibrator>,
    /// The fold of each sample.
    pub fold_of: Vec<u32>,
    /// The logits of every sample, calibrated by the calibrator that was fitted without it.
    pub logits: Vec<f32>,
    /// The NLL of every sample with these logits, in nats.
    pub nll: Vec<f64>,
}

/// Folds of the cross-fits that a model stores or is evaluated by.
const FOLDS: usize = 5;
/// Their folds are a function of the number of labels alone, so that metrics can be computed again from the predictions.
const FOLD_SEED: Seed = Seed(0);

impl CrossFit {
    /// Cross-fits with five folds, as for every model of calmix, or with one fold per group if there are fewer.
    ///
    /// # Errors
    /// If there are fewer than two groups, and the errors of `fit`.
    pub fn with_five_folds(
        fit: impl Fn(LabelledLogits<'_>) -> Result<Calibrator, MetricsError>,
        rows: LabelledLogits<'_>,
    ) -> Result<Self, MetricsError> {
        let groups = group_count(rows.groups, rows.labels.len());
        Self::fit(fit, rows, FOLDS.min(groups), FOLD_SEED)
    }

    /// Splits the rows into `folds` folds, whose numbers of groups differ by at most one, and fits without each.
    ///
    /// The folds are a function of the seed and the groups; without groups, of the seed and the number of rows.
    ///
    /// # Errors
    /// If a fold would be empty or the only one, and the errors of `fit`.
    pub fn fit(
        fit: impl Fn(LabelledLogits<'_>) -> Result<Calibrator, MetricsError>,
        rows: LabelledLogits<'_>,
        folds: usize,
        seed: Seed,
    ) -> Result<Self, MetricsError> {
        let LabelledLogits { logits, labels, groups } = rows;
        checked::logits(logits, labels)?;
        let n = labels.len();
        let width = logits.width();
        let groups_of_rows = rows_of_groups(groups, n);
        if folds < 2 || folds > groups_of_rows.len() {
            return Err(MetricsError::Folds { folds, samples: groups_of_rows.len() });
        }
        let fold_of = deal(&groups_of_rows, n, folds, seed);
        let mut calibrators = Vec::with_capacity(folds);
        let mut calibrated = vec![0.0; n * width];
        for fold in 0..folds as u32 {
            let (held_out, kept): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| fold_of[row] == fold);
            let z: Vec<f32> = kept.iter().flat_map(|&row| logits.row(row)).copied().collect();
            let y: Vec<u32> = kept.iter().map(|&row| labels[row]).collect();
            let kept_groups = select_groups(groups, &kept);
            let calibrator = fit(LabelledLogits {
                logits: checked::matrix("logits", &z, y.len(), width)?,
                labels: &y,
                groups: &kept_groups,
            })?;
            for row in held_out {
                calibrator.apply_to_row(logits.row(row), &mut calibrated[row * width..(row + 1) * width])?;
            }
            calibrators.push(calibrator);
        }
        let nll = nll_of_rows(checked::matrix("logits", &calibrated, n, width)?, labels, 1.0)?;
        Ok(Self { folds: calibrators, fold_of, logits: calibrated, nll })
    }

    /// Returns the mean NLL of the cross-fitted rows, in nats.
    pub fn mean_nll(&self) -> f64 {
        self.nll.iter().sum::<f64>() / self.nll.len().max(1) as f64
    }
}

/// Assigns shuffled groups to folds in turn.
fn deal(rows_of_groups: &[Vec<usize>], n: usize, folds: usize, seed: Seed) -> Vec<u32> {
    let mut order: Vec<usize> = (0..rows_of_groups.len()).collect();
    seed.stream(Domain::Fold, 0, 0).shuffle(&mut order);
    let mut fold_of = vec![0; n];
    for (place, group) in order.into_iter().enumerate() {
        for &row in &rows_of_groups[group] {
            fold_of[row] = (place % folds) as u32;
        }
    }
    fold_of
}

/// The number of logits (labels times classes) up to which every kind is tried; above it, only a temperature.
const MAX_LOGITS: usize = 2_000_000;

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
    /// Cross-fits every kind for which there are [enough labels](CalibratorKind::min_labels), the simplest first. A kind
    /// replaces a simpler one if its NLL is lower by more than a standard error.
    ///
    /// # Errors
    /// If there are fewer than two labels, labels and logits do not match, a logit is not finite, or `stop` returns true.
    pub fn of(rows: LabelledLogits<'_>, stop: &dyn Fn() -> bool) -> Result<Self, MetricsError> {
        let cross_fit = |kind| {
            let fit = |rows: LabelledLogits<'_>| Calibrator::fit(kind, rows.logits, rows.labels, stop);
            CrossFit::with_five_folds(fit, rows)
        };
        let labels = group_count(rows.groups, rows.labels.len());
        let simplest = CalibratorKind::Temperature;
        let mut best = Self { kind: simplest, cross_fit: cross_fit(simplest)?, tried: Vec::new() };
        best.tried.push(TriedCalibrator { kind: simplest, nll: best.cross_fit.mean_nll() });
        for kind in [CalibratorKind::Vector, CalibratorKind::Isotonic] {
            if labels < kind.min_labels() || rows.logits.data().len() > MAX_LOGITS {
                continue;
            }
            let other = cross_fit(kind)?;
            best.tried.push(TriedCalibrator { kind, nll: other.mean_nll() });
            if is_lower_by(1.0, &other.nll, &best.cross_fit.nll, rows.groups) {
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
pub fn temperature_if_clearly_better(
    rows: LabelledLogits<'_>,
    prior: TemperaturePrior,
    stop: &dyn Fn() -> bool,
) -> Result<Calibrator, MetricsError> {
    let fit = |rows: LabelledLogits<'_>| -> Result<Calibrator, MetricsError> {
        checked::not_stopped(stop)?;
        let temperature = Temperature::fit_with_prior(rows.logits, rows.labels, prior)?;
        Ok(Calibrator::Temperature { temperature })
    };
    let cross_fit = CrossFit::with_five_folds(fit, rows)?;
    let uncalibrated = nll_of_rows(rows.logits, rows.labels, 1.0)?;
    if is_lower_by(1.0, &cross_fit.nll, &uncalibrated, rows.groups) {
        fit(rows)
    } else {
        Ok(Calibrator::IDENTITY)
    }
}

/// Returns whether `these` are lower than `those` by more than this many standard errors of the mean difference. A
/// [group](crate::groups) counts once, with its mean.
pub fn is_lower_by(standard_errors: f64, these: &[f64], those: &[f64], groups: &[u32]) -> bool {
    let differences: Vec<f64> = those.iter().zip(these).map(|(those, these)| those - these).collect();
    let differences = group_means(&differences, groups);
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    mean > standard_errors * (variance / n).sqrt()
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;

    use super::*;

    fn fit_temperature(rows: LabelledLogits<'_>) -> Result<Calibrator, MetricsError> {
        Calibrator::fit(CalibratorKind::Temperature, rows.logits, rows.labels, &|| false)
    }

    /// Margins of `margin`, every `period`-th of them wrong.
    fn table(n: usize, margin: f32, period: usize) -> (Vec<f32>, Vec<u32>) {
        let logits = (0..n).flat_map(|_| [margin, 0.0]).collect();
        (logits, (0..n).map(|i| u32::from(i % period == 0)).collect())
    }

    #[test]
    fn each_row_is_calibrated_by_a_fit_without_it() {
        let (logits, labels) = table(40, 6.0, 4);
        let matrix = Matrix::new(&logits, 40, 2).unwrap();
        let fit =
            CrossFit::fit(fit_temperature, LabelledLogits::ungrouped(matrix, &labels), 5, Seed(3)).unwrap();
        for (fold, calibrator) in fit.folds.iter().enumerate() {
            let kept: Vec<usize> = (0..40).filter(|&i| fit.fold_of[i] as usize != fold).collect();
            assert_eq!(kept.len(), 32);
            let z: Vec<f32> = kept.iter().flat_map(|&i| logits[2 * i..2 * i + 2].to_vec()).collect();
            let y: Vec<u32> = kept.iter().map(|&i| labels[i]).collect();
            let expected = Temperature::fit_penalised(Matrix::new(&z, 32, 2).unwrap(), &y).unwrap();
            assert_eq!(*calibrator, Calibrator::Temperature { temperature: expected });
            for row in (0..40).filter(|&i| fit.fold_of[i] as usize == fold) {
                assert_eq!(fit.logits[2 * row], (6.0 / expected.value()) as f32);
            }
        }
        let nll = |row: usize| {
            let (label, other) = if labels[row] == 0 { (0, 1) } else { (1, 0) };
            let margin = f64::from(fit.logits[2 * row + label]) - f64::from(fit.logits[2 * row + other]);
            libm::log(1.0 + libm::exp(-margin))
        };
        assert!((0..40).all(|row| (fit.nll[row] - nll(row)).abs() < 1e-12));
    }

    #[test]
    fn folds_need_samples() {
        let (logits, labels) = table(3, 1.0, 2);
        let rows = LabelledLogits::ungrouped(Matrix::new(&logits, 3, 2).unwrap(), &labels);
        for folds in [0, 1, 4, usize::MAX] {
            assert!(CrossFit::fit(fit_temperature, rows, folds, Seed(0)).is_err());
        }
        assert_eq!(CrossFit::fit(fit_temperature, rows, 3, Seed(0)).unwrap().folds.len(), 3);
        // Two groups cannot go into three folds.
        let grouped = LabelledLogits { groups: &[4, 4, 1], ..rows };
        assert!(CrossFit::fit(fit_temperature, grouped, 3, Seed(0)).is_err());
    }

    #[test]
    fn groups_are_never_divided() {
        let (logits, labels) = table(60, 3.0, 4);
        let groups: Vec<u32> = (0..60).map(|row| row / 3 % 12).collect();
        let rows =
            LabelledLogits { logits: Matrix::new(&logits, 60, 2).unwrap(), labels: &labels, groups: &groups };
        for seed in 0..20 {
            let fit = |kept: LabelledLogits<'_>| {
                assert_eq!(kept.groups.len(), kept.labels.len());
                fit_temperature(kept)
            };
            let cross_fit = CrossFit::fit(fit, rows, 5, Seed(seed)).unwrap();
            for (row, group) in groups.iter().enumerate() {
                let other = groups.iter().position(|other| other == group).unwrap();
                assert_eq!(cross_fit.fold_of[row], cross_fit.fold_of[other]);
            }
        }
    }

    #[test]
    fn difference_is_compared_with_its_standard_error() {
        // The mean difference is 3 and its standard error 2.
        assert!(
            is_lower_by(1.0, &[0.0; 2], &[1.0, 5.0], &[]) && !is_lower_by(2.0, &[0.0; 2], &[1.0, 5.0], &[])
        );
    }
}
