//! Measures of calibration of rows of probabilities or logits, in the precision that they come in.

use std::num::NonZeroU16;

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::rng::Seed;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::measure::{
    Binned, Binning, ClassWise, Counts, Edges, ReliabilityBin, RiskCoverage, TopLabel, brier_of_rows,
    confidence_gap, debiased_squared_error, ece, nll_of_probability_rows, nll_of_rows, smooth_ece,
};
use calmix_metrics::metrics::Resampling;
use calmix_metrics::stats::{clopper_pearson, percentile_interval, resample};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::interop::{classes_of, internal, invalid};
use crate::rows::{RowsOf, check_sums};

/// The number of replicates of a smooth ECE, each of which takes as long as the measure itself.
const SMOOTH_REPLICATES: u64 = 200;

/// A function of the bins.
type OfBins = fn(&[ReliabilityBin]) -> f64;
type BinTuple = (usize, f64, f64);

/// Computes a measure by its name, and its confidence interval at a level; without a level the interval is empty.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python passes them by name, from one place")]
pub(crate) fn measure(
    py: Python<'_>,
    name: &str,
    rows: RowsOf<'_>,
    are_logits: bool,
    labels: PyReadonlyArray1<'_, i64>,
    bins: NonZeroU16,
    by_mass: bool,
    right: bool,
    level: Option<f64>,
    seed: u64,
) -> PyResult<(f64, (f64, f64))> {
    let labels = classes_of(&labels)?;
    let how = How { name, are_logits, binning: binning(bins, by_mass, right), level, seed: Seed(seed) };
    rows.with(py, |rows| how.measure(rows, &labels), |rows| how.measure(rows, &labels))
}

/// The bins of a reliability diagram that are not empty: count, mean confidence, accuracy.
#[pyfunction]
pub(crate) fn reliability_bins(
    py: Python<'_>,
    rows: RowsOf<'_>,
    are_logits: bool,
    labels: PyReadonlyArray1<'_, i64>,
    bins: NonZeroU16,
    by_mass: bool,
    right: bool,
) -> PyResult<Vec<BinTuple>> {
    let labels = classes_of(&labels)?;
    let how =
        How { name: "", are_logits, binning: binning(bins, by_mass, right), level: None, seed: Seed(0) };
    let top_label = rows.with(
        py,
        |rows| how.checked_top_label(rows, &labels),
        |rows| how.checked_top_label(rows, &labels),
    );
    let found = calmix_metrics::measure::reliability_bins(&top_label?, how.binning);
    let filled = found.into_iter().filter(|bin| bin.count > 0);
    Ok(filled.map(|bin| (bin.count, bin.confidence, bin.accuracy)).collect())
}

/// The requested measure and its options.
#[derive(Clone, Copy)]
struct How<'a> {
    name: &'a str,
    are_logits: bool,
    binning: Binning,
    level: Option<f64>,
    seed: Seed,
}

impl How<'_> {
    fn measure<T: Scalar>(self, rows: MatrixOf<'_, T>, labels: &[u32]) -> PyResult<(f64, (f64, f64))> {
        self.check_sums(rows)?;
        let of_bins = |of_bins: OfBins| {
            let binned = Binned::new(&self.top_label(rows, labels)?, self.binning);
            self.value(labels.len(), |counts| of_bins(&binned.bins(counts)))
        };
        match self.name {
            "ece" => of_bins(ece),
            "debiased_squared_error" => of_bins(debiased_squared_error),
            "confidence_gap" => of_bins(confidence_gap),
            "smooth_ece" => self.smooth_ece(&self.top_label(rows, labels)?),
            "error" => self.error(&self.top_label(rows, labels)?),
            "aurc" => {
                let coverage = RiskCoverage::new(&self.top_label(rows, labels)?);
                self.value(labels.len(), |counts| coverage.aurc(counts))
            }
            "nll" => {
                let nll = if self.are_logits {
                    nll_of_rows(rows, labels, 1.0)
                } else {
                    nll_of_probability_rows(rows, labels)
                };
                let nll = nll.map_err(invalid)?;
                self.value(labels.len(), |counts| counts.mean(&nll))
            }
            "brier_score" | "class_wise_ece" => {
                // The bins borrow the probabilities, so these must live until the last replicate.
                let computed =
                    if self.are_logits { Temperature::IDENTITY.probabilities(rows) } else { Vec::new() };
                let shape = (rows.rows(), rows.width());
                let rows = if self.are_logits { shaped(&computed, shape)? } else { rows };
                if self.name == "brier_score" {
                    let brier = brier_of_rows(rows, labels).map_err(invalid)?;
                    return self.value(labels.len(), |counts| counts.mean(&brier));
                }
                let class_wise = ClassWise::new(rows, labels, self.binning).map_err(invalid)?;
                self.value(labels.len(), |counts| class_wise.ece(counts))
            }
            name => Err(internal(format!("there is no measure {name}"))),
        }
    }

    fn checked_top_label<T: Scalar>(self, rows: MatrixOf<'_, T>, labels: &[u32]) -> PyResult<TopLabel> {
        self.check_sums(rows)?;
        self.top_label(rows, labels)
    }

    /// Refuses rows of probabilities that do not sum to 1. The measures check that each is in [0, 1].
    fn check_sums<T: Scalar>(self, rows: MatrixOf<'_, T>) -> PyResult<()> {
        if self.are_logits { Ok(()) } else { check_sums(rows) }
    }

    fn top_label<T: Scalar>(self, rows: MatrixOf<'_, T>, labels: &[u32]) -> PyResult<TopLabel> {
        let top_label = if self.are_logits {
            TopLabel::from_logits(rows, labels, 1.0)
        } else {
            TopLabel::from_probabilities(rows, labels)
        };
        top_label.map_err(invalid)
    }

    /// Computes the measure of rows that count once, and its bootstrap interval.
    fn value(self, rows: usize, of: impl Fn(&Counts) -> f64) -> PyResult<(f64, (f64, f64))> {
        let value = of(&Counts::once(rows));
        let Some(level) = self.level else { return Ok((value, (value, value))) };
        let how = Resampling { level, ..Resampling::default() };
        let interval = how.interval(rows, self.seed, of).map_err(invalid)?;
        Ok((value, (interval.low, interval.high)))
    }

    fn error(self, top_label: &TopLabel) -> PyResult<(f64, (f64, f64))> {
        let wrong = top_label.correct().iter().filter(|&&right| !right).count();
        let value = wrong as f64 / top_label.len().max(1) as f64;
        let Some(level) = self.level else { return Ok((value, (value, value))) };
        let exact = clopper_pearson(wrong, top_label.len(), level).map_err(invalid)?;
        Ok((value, (exact.low, exact.high)))
    }

    fn smooth_ece(self, top_label: &TopLabel) -> PyResult<(f64, (f64, f64))> {
        let value = smooth_ece(top_label).error;
        let Some(level) = self.level else { return Ok((value, (value, value))) };
        let mut drawn = vec![0; top_label.len()];
        let mut replicates = Vec::new();
        for replicate in 0..SMOOTH_REPLICATES {
            resample(self.seed, replicate, &mut drawn);
            let confidence = drawn.iter().map(|&row| top_label.confidence()[row]).collect();
            let correct = drawn.iter().map(|&row| top_label.correct()[row]).collect();
            replicates.push(smooth_ece(&TopLabel::new(confidence, correct).map_err(internal)?).error);
        }
        Ok((value, percentile_interval(&replicates, level).map_err(invalid)?))
    }
}

fn binning(bins: NonZeroU16, by_mass: bool, right: bool) -> Binning {
    let edges = if right { Edges::RightClosed } else { Edges::LeftClosed };
    if by_mass { Binning::EqualMass { bins } } else { Binning::EqualWidth { bins, edges } }
}

fn shaped<T: Scalar>(numbers: &[T], shape: (usize, usize)) -> PyResult<MatrixOf<'_, T>> {
    MatrixOf::new(numbers, shape.0, shape.1).map_err(invalid)
}
