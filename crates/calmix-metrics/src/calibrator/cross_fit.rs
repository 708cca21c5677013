//! Cross-fitting: evaluates a calibrator on the labels that fitted it, if there is no second set of labels.
//!
//! Every sample is calibrated by a fit without its fold. The calibrator to use is then the one fitted on all
//! samples, as is usual after cross-validation; the metrics of the cross-fitted rows estimate its gain.
//!
//! The logits must come from a network that was not trained on these labels. Labels that it has memorised give the
//! lowest temperature in every fold, and cross-fitting cannot detect that.

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};

use super::any_calibrator::{Calibrator, CalibratorKind};
use crate::checked;
use crate::error::MetricsError;
use crate::groups::{group_count, rows_of_groups, select_groups};
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
    /// If there are fewer than two groups, and those of `fit`.
    pub fn in_five(
        fit: impl Fn(LabelledLogits<'_>) -> Result<Calibrator, MetricsError>,
        rows: LabelledLogits<'_>,
    ) -> Result<Self, MetricsError> {
        let groups = group_count(rows.groups, rows.labels.len());
        Self::fit_by(fit, rows, FOLDS.min(groups), FOLD_SEED)
    }

    /// Splits the rows into `folds` folds, whose numbers of groups differ by at most one, and fits without each.
    ///
    /// The folds are a function of the seed and the groups; without groups, of the seed and the number of rows.
    ///
    /// # Errors
    /// If a fold would be empty or the only one, and those of [`Calibrator::fit`].
    pub fn fit(
        kind: CalibratorKind,
        rows: LabelledLogits<'_>,
        folds: usize,
        seed: Seed,
    ) -> Result<Self, MetricsError> {
        Self::fit_by(|rows| Calibrator::fit(kind, rows.logits, rows.labels), rows, folds, seed)
    }

    /// Cross-fits as [`fit`](Self::fit) does, with the caller's own fit.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_by(
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
        let mut maps = Vec::with_capacity(folds);
        let mut mapped = vec![0.0; n * width];
        for fold in 0..folds as u32 {
            let (held_out, kept): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| fold_of[row] == fold);
            let z: Vec<f32> = kept.iter().flat_map(|&row| logits.row(row)).copied().collect();
            let y: Vec<u32> = kept.iter().map(|&row| labels[row]).collect();
            let kept_groups = select_groups(groups, &kept);
            let map = fit(LabelledLogits {
                logits: shaped(&z, y.len(), width)?,
                labels: &y,
                groups: &kept_groups,
            })?;
            for row in held_out {
                map.apply_to_row(logits.row(row), &mut mapped[row * width..(row + 1) * width])?;
            }
            maps.push(map);
        }
        let nll = nll_of_rows(shaped(&mapped, n, width)?, labels, 1.0)?;
        Ok(Self { folds: maps, fold_of, logits: mapped, nll })
    }

    /// Returns the mean NLL of the cross-fitted rows, in nats.
    pub fn mean_nll(&self) -> f64 {
        self.nll.iter().sum::<f64>() / self.nll.len().max(1) as f64
    }
}

fn shaped(data: &[f32], rows: usize, width: usize) -> Result<Matrix<'_>, MetricsError> {
    let wrong = |_| MetricsError::Length { what: "logits", expected: rows * width, got: data.len() };
    Matrix::new(data, rows, width).map_err(wrong)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrator::temperature::Temperature;

    /// Margins of `margin`, every `period`-th of them wrong.
    fn table(n: usize, margin: f32, period: usize) -> (Vec<f32>, Vec<u32>) {
        let logits = (0..n).flat_map(|_| [margin, 0.0]).collect();
        (logits, (0..n).map(|i| u32::from(i % period == 0)).collect())
    }

    #[test]
    fn each_row_is_mapped_by_a_fit_without_it() {
        let (logits, labels) = table(40, 6.0, 4);
        let matrix = Matrix::new(&logits, 40, 2).unwrap();
        let fit = CrossFit::fit(
            CalibratorKind::Temperature,
            LabelledLogits::ungrouped(matrix, &labels),
            5,
            Seed(3),
        )
        .unwrap();
        for (fold, map) in fit.folds.iter().enumerate() {
            let kept: Vec<usize> = (0..40).filter(|&i| fit.fold_of[i] as usize != fold).collect();
            assert_eq!(kept.len(), 32);
            let z: Vec<f32> = kept.iter().flat_map(|&i| logits[2 * i..2 * i + 2].to_vec()).collect();
            let y: Vec<u32> = kept.iter().map(|&i| labels[i]).collect();
            let expected = Temperature::fit_cautiously(Matrix::new(&z, 32, 2).unwrap(), &y).unwrap();
            assert_eq!(*map, Calibrator::Temperature { temperature: expected });
            for row in (0..40).filter(|&i| fit.fold_of[i] as usize == fold) {
                assert_eq!(fit.logits[2 * row], (6.0 / expected.value()) as f32);
            }
        }
        let nll = |row: usize| {
            let (own, other) = if labels[row] == 0 { (0, 1) } else { (1, 0) };
            let margin = f64::from(fit.logits[2 * row + own]) - f64::from(fit.logits[2 * row + other]);
            libm::log(1.0 + libm::exp(-margin))
        };
        assert!((0..40).all(|row| (fit.nll[row] - nll(row)).abs() < 1e-12));
    }

    #[test]
    fn folds_need_samples() {
        let (logits, labels) = table(3, 1.0, 2);
        let rows = LabelledLogits::ungrouped(Matrix::new(&logits, 3, 2).unwrap(), &labels);
        for folds in [0, 1, 4, usize::MAX] {
            assert!(CrossFit::fit(CalibratorKind::Temperature, rows, folds, Seed(0)).is_err());
        }
        assert_eq!(CrossFit::fit(CalibratorKind::Temperature, rows, 3, Seed(0)).unwrap().folds.len(), 3);
        // Two groups cannot go into three folds.
        let grouped = LabelledLogits { groups: &[4, 4, 1], ..rows };
        assert!(CrossFit::fit(CalibratorKind::Temperature, grouped, 3, Seed(0)).is_err());
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
                Calibrator::fit(CalibratorKind::Temperature, kept.logits, kept.labels)
            };
            let cross_fit = CrossFit::fit_by(fit, rows, 5, Seed(seed)).unwrap();
            for (row, group) in groups.iter().enumerate() {
                let other = groups.iter().position(|other| other == group).unwrap();
                assert_eq!(cross_fit.fold_of[row], cross_fit.fold_of[other]);
            }
        }
    }
}
