//! The error that more labels would lead to, extrapolated from models that were trained on part of the labels.
//!
//! Between half and twice a number of labels, the error is about a power of it: error = a · labels^b with b between −1 and 0. The line
//! is fitted to logarithms by least squares. Its interval comes from resampling the held-out labels; all points predict the same ones,
//! so that a label which is hard at every point says little about the slope.

use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use crate::error::MetricsError;
use crate::stats::{Estimate, percentile_interval, resample};

/// The predictions of models that were trained on the same number of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutErrors {
    /// The number of labels that each model was trained on.
    pub labels: f64,
    /// For each held-out label, or group of labels, the share of wrong predictions.
    pub wrong: Vec<f64>,
}

/// The measured errors, and those that more labels would lead to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningCurve {
    /// The measured errors, by ascending number of labels.
    pub points: Vec<CurvePoint>,
    /// The number of labels of the model.
    pub labels: u64,
    /// The number of additional labels of the forecast.
    pub more: u64,
    /// The error of the model.
    pub now: Estimate,
    /// The error with more labels.
    pub later: Estimate,
    /// The difference of the two.
    pub gain: Estimate,
}

/// A measured error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// The number of labels that the models were trained on.
    pub labels: f64,
    /// The share of wrong predictions.
    pub error: f64,
}

/// Bootstrap replicates.
const REPLICATES: u64 = 1_000;
/// The level of the intervals. Resampling the labels does not vary which labels a model is trained on, so fewer cover the truth:
/// `docs/study/labelling.md` has how many.
const LEVEL: f64 = 0.95;
/// The steepest slope: a model whose error falls faster than its labels grow in number is not to be expected.
const STEEPEST: f64 = -1.0;

impl LearningCurve {
    /// Fits the curve to points of at least two numbers of labels, and forecasts about as many labels again as the model has;
    /// `None` with fewer points or without held-out labels.
    ///
    /// # Errors
    /// If the points are not about the same held-out labels.
    pub fn fit(points: &[HeldOutErrors], labels: u64, seed: Seed) -> Result<Option<Self>, MetricsError> {
        let count = points.first().map_or(0, |point| point.wrong.len());
        if let Some(point) = points.iter().find(|point| point.wrong.len() != count) {
            return Err(MetricsError::Length {
                what: "held-out labels",
                expected: count,
                got: point.wrong.len(),
            });
        }
        if points.len() < 2 || count == 0 || labels == 0 {
            return Ok(None);
        }
        let more = one_digit(labels);
        let line = Line::new(points);
        let [mut now, mut later, mut gain] = [const { Vec::new() }; 3];
        let mut forecast = |chosen: &[usize]| {
            let slope_and_mean = line.fit(chosen);
            let [before, after] = [labels, labels + more].map(|labels| line.at(slope_and_mean, labels));
            now.push(before.falling);
            later.push(after.falling);
            gain.push(before.free - after.free);
        };
        let mut chosen: Vec<usize> = (0..count).collect();
        forecast(&chosen);
        for replicate in 0..REPLICATES {
            resample(seed, replicate, &mut chosen);
            forecast(&chosen);
        }
        let estimate = |numbers: &[f64]| -> Result<Estimate, MetricsError> {
            let (first, replicates) = numbers.split_first().unwrap_or((&f64::NAN, &[]));
            let (low, high) = percentile_interval(replicates, LEVEL)?;
            Ok(Estimate { n: count, estimate: *first, low, high, level: LEVEL })
        };
        let error_of = |point: &HeldOutErrors| CurvePoint {
            labels: point.labels,
            error: point.wrong.iter().sum::<f64>() / count as f64,
        };
        Ok(Some(Self {
            points: points.iter().map(error_of).collect(),
            labels,
            more,
            now: estimate(&now)?,
            later: estimate(&later)?,
            gain: estimate(&gain)?,
        }))
    }

    /// Returns whether the labels suffice to tell that more of them would lower the error.
    pub fn can_tell(&self) -> bool {
        self.gain.low > 0.0
    }
}

/// Rounds down to one significant digit.
fn one_digit(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0));
    number / unit * unit
}

/// A line through the logarithms of labels and errors.
struct Line<'a> {
    points: &'a [HeldOutErrors],
    logs: Vec<f64>,
    mean: f64,
    square: f64,
}

/// An error on the line.
struct OnLine {
    /// With a slope that is at most 0, as more labels do no harm.
    falling: f64,
    /// With a slope of either sign, which shows whether the labels suffice to tell.
    free: f64,
}

impl<'a> Line<'a> {
    fn new(points: &'a [HeldOutErrors]) -> Self {
        let logs: Vec<f64> = points.iter().map(|point| point.labels.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let square = logs.iter().map(|log| (log - mean).powi(2)).sum();
        Self { points, logs, mean, square }
    }

    /// Returns the slope and the mean of the logarithms of the errors of these held-out labels.
    fn fit(&self, chosen: &[usize]) -> (f64, f64) {
        let count = chosen.len() as f64;
        // Half an error among one more label: the logarithm of no error at all is infinite.
        let log_error = |point: &HeldOutErrors| {
            let wrong: f64 = chosen.iter().filter_map(|&index| point.wrong.get(index)).sum();
            ((wrong + 0.5) / (count + 1.0)).ln()
        };
        let errors: Vec<f64> = self.points.iter().map(log_error).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let products = self.logs.iter().zip(&errors).map(|(log, error)| (log - self.mean) * (error - mean));
        let slope = if self.square > 0.0 { products.sum::<f64>() / self.square } else { 0.0 };
        (slope, mean)
    }

    fn at(&self, (slope, mean): (f64, f64), labels: u64) -> OnLine {
        let distance = (labels as f64).ln() - self.mean;
        let error = |slope: f64| (mean + slope * distance).exp().min(1.0);
        OnLine { falling: error(slope.clamp(STEEPEST, 0.0)), free: error(slope.clamp(STEEPEST, -STEEPEST)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels of which a share is wrong at each point, the same labels first.
    fn points(errors: &[(f64, f64)], count: usize) -> Vec<HeldOutErrors> {
        let wrong = |error: f64| (0..count).map(|n| f64::from((n as f64) < error * count as f64)).collect();
        errors.iter().map(|&(labels, error)| HeldOutErrors { labels, wrong: wrong(error) }).collect()
    }

    #[test]
    fn power_of_the_labels_is_continued() {
        let power = |labels: f64| 2.0 * labels.powf(-0.5);
        let of = [50.0, 75.0, 90.0].map(|labels| (labels, power(labels)));
        let curve = LearningCurve::fit(&points(&of, 20_000), 100, Seed(1)).unwrap().unwrap();
        assert_eq!((curve.labels, curve.more), (100, 100));
        assert!(
            (curve.now.estimate - 0.2).abs() < 1e-3 && (curve.later.estimate - power(200.0)).abs() < 1e-3
        );
        assert!((curve.gain.estimate - (0.2 - power(200.0))).abs() < 1e-3 && curve.can_tell());
        assert!(curve.later.low < power(200.0) && power(200.0) < curve.later.high);
        assert_eq!(curve.points[1].labels, 75.0);
    }

    #[test]
    fn few_labels_cannot_tell() {
        let of = [(10.0, 0.3), (15.0, 0.25), (18.0, 0.3)];
        let curve = LearningCurve::fit(&points(&of, 20), 20, Seed(1)).unwrap().unwrap();
        assert!(!curve.can_tell(), "{curve:?}");
        assert!(curve.later.estimate <= curve.now.estimate);
        // Errors that grow with the labels are noise.
        let of = [(500.0, 0.1), (750.0, 0.2)];
        let curve = LearningCurve::fit(&points(&of, 1_000), 1_000, Seed(1)).unwrap().unwrap();
        assert!(!curve.can_tell() && curve.later.estimate == curve.now.estimate);
    }

    #[test]
    fn no_error_is_no_infinity() {
        let curve =
            LearningCurve::fit(&points(&[(10.0, 0.0), (15.0, 0.0)], 20), 20, Seed(1)).unwrap().unwrap();
        assert!(curve.later.high.is_finite() && curve.later.high < 0.1);
    }

    #[test]
    fn too_few_points_have_no_curve() {
        assert_eq!(LearningCurve::fit(&points(&[(10.0, 0.5)], 20), 20, Seed(1)).unwrap(), None);
        assert_eq!(LearningCurve::fit(&points(&[(10.0, 0.5), (15.0, 0.4)], 0), 20, Seed(1)).unwrap(), None);
        let mut unequal = points(&[(10.0, 0.5), (15.0, 0.4)], 20);
        unequal[1].wrong.pop();
        assert!(LearningCurve::fit(&unequal, 20, Seed(1)).is_err());
    }

    #[test]
    fn forecasts_are_of_round_numbers() {
        assert_eq!([1, 9, 10, 99, 237, 2_000].map(one_digit), [1, 9, 10, 90, 200, 2_000]);
    }
}
