//! Evaluates a network: every metric of accuracy and calibration, from logits and labels.
//!
//! [`evaluate()`] turns [`Predictions`] into an [`Evaluation`]: a pure function, so every number of a run can be rebuilt from
//! the files of its predictions.
//!
//! | question | here |
//! |---|---|
//! | How accurate and how calibrated? | [`Metrics`] |
//! | How uncertain are these metrics? | [`ExactIntervals`](crate::metrics::ExactIntervals), always; [`Intervals`], by bootstrap, at the end of a run |
//! | What does a fitted calibrator gain? | [`Calibrated`], on labels that did not fit it |
//! | Which of many evaluations is the result? | [`Selection`] |
//!
//! ```
//! use calmix_metrics::evaluate::evaluate;
//! use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
//!
//! let predictions = Predictions {
//!     step: 1000,
//!     split: EvalSet::Test,
//!     model: EvalModel::Ema,
//!     classes: vec!["cat".to_owned(), "dog".to_owned()],
//!     ids: vec![7, 8, 9],
//!     labels: vec![0, 1, 1],
//!     logits: vec![2.0, 0.0, 0.0, 3.0, 1.0, 0.0],
//!     groups: Vec::new(),
//! };
//! let evaluation = evaluate(&predictions, None, None)?;
//! assert_eq!(evaluation.metrics.error, 1.0 / 3.0);
//! # Ok::<(), calmix_metrics::error::MetricsError>(())
//! ```

mod evaluation;
mod selection;

use std::borrow::Cow;
use std::cell::RefCell;

use calmix_core::rng::Seed;

use crate::calibrator::temperature::Temperature;
use crate::error::MetricsError;
use crate::fitted_calibrator::FittedCalibrator;
use crate::metrics::{EDGES, Intervals, Metrics, PreparedRows, Resampling};
use crate::predictions::{LabelledLogits, Predictions};

pub use evaluation::{Calibrated, EvaluatedBy, Evaluation};
pub use selection::{Selected, Selection, select};

/// Evaluates predictions: the metrics, at the end of a run their intervals, and both again with a fitted calibrator.
///
/// Replicates are a function of the seed, the step and the split: all models and calibrators are evaluated on the same
/// resampled rows, so the draws do not add to their differences. Labels that fitted the calibrator are cross-fitted.
///
/// # Errors
/// If labels and logits do not match, or a logit is not finite.
pub fn evaluate(
    predictions: &Predictions,
    calibration: Option<&FittedCalibrator>,
    resampling: Option<(Resampling, Seed)>,
) -> Result<Evaluation, MetricsError> {
    let all = evaluate_unless(predictions, calibration, resampling, &mut || false);
    Ok(all?.unwrap_or_else(|| unreachable!("there is no stop condition")))
}

/// Evaluates as [`evaluate()`] does; returns `None` if `stop`, which is called before every replicate and every fit, returns
/// true.
///
/// # Errors
/// As [`evaluate()`].
pub fn evaluate_unless(
    predictions: &Predictions,
    calibration: Option<&FittedCalibrator>,
    resampling: Option<(Resampling, Seed)>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Option<Evaluation>, MetricsError> {
    let LabelledLogits { logits, labels, .. } = predictions.labelled()?;
    let stop = RefCell::new(stop);
    let is_stopped = || (stop.borrow_mut())();
    let measure = |rows: &PreparedRows| {
        let stop = &mut || is_stopped();
        let mut resample =
            |(how, seed)| Intervals::of_rows(rows, &predictions.groups, how, predictions.seed(seed), stop);
        let intervals = resampling.map(&mut resample).transpose();
        let bins = rows.bins();
        let by_class = rows.class_accuracy(labels, logits.width());
        intervals.ok().map(|intervals| (Metrics::of_rows(rows), intervals.flatten(), bins, by_class))
    };
    let raw = PreparedRows::new(logits, labels, Temperature::IDENTITY)?;
    let Some((metrics, intervals, bins, class_accuracy)) = measure(&raw) else {
        return Ok(None);
    };
    let mut calibrated = None;
    if let Some(map) = calibration {
        let mapped = match MappedLogits::of_unless(predictions, map, &is_stopped) {
            Err(MetricsError::Stopped) => return Ok(None),
            mapped => mapped?,
        };
        let MappedLogits { logits, temperature, evaluated_by } = mapped;
        let rows = PreparedRows::new(predictions.shaped(&logits)?, labels, temperature)?;
        let Some((metrics, intervals, bins, by_class)) = measure(&rows) else { return Ok(None) };
        // Only vector scaling can change the predicted class.
        let class_accuracy = if map.calibrator.may_change_labels() { by_class } else { Vec::new() };
        calibrated = Some(Calibrated {
            kind: map.calibrator.kind(),
            temperature: map.temperature(),
            fitted_on: map.fitted_on,
            fitted_samples: map.samples,
            evaluated_by,
            metrics,
            class_accuracy,
            bins,
            intervals,
        });
    }
    Ok(Some(Evaluation {
        step: predictions.step,
        split: predictions.split,
        model: predictions.model,
        samples: labels.len() as u64,
        groups: (!predictions.groups.is_empty()).then(|| predictions.group_count() as u64),
        skipped: 0,
        edges: EDGES,
        metrics,
        class_accuracy,
        bins,
        intervals,
        calibrated,
    }))
}

/// Calibrated predictions: logits, and the temperature that they are still to be divided by.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedLogits<'a> {
    /// One row of logits per sample.
    pub logits: Cow<'a, [f32]>,
    /// The softmax of these logits at this temperature is the calibrated probability.
    pub temperature: Temperature,
    /// The labels on which the calibrator is evaluated.
    pub evaluated_by: EvaluatedBy,
}

impl<'a> MappedLogits<'a> {
    /// Calibrates predictions; if their labels fitted the calibrator, each with a calibrator fitted without it.
    ///
    /// # Errors
    /// If labels and logits do not match, a logit is not finite, or the calibrator is for another number of classes.
    pub fn of(predictions: &'a Predictions, map: &FittedCalibrator) -> Result<Self, MetricsError> {
        Self::of_unless(predictions, map, &|| false)
    }

    /// Calibrates as [`of`](Self::of) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`of`](Self::of), and [`MetricsError::Stopped`].
    pub fn of_unless(
        predictions: &'a Predictions,
        map: &FittedCalibrator,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let logits = predictions.matrix()?;
        let fitted = map.fitted_on.split() == Some(predictions.split) && predictions.group_count() > 1;
        let (logits, temperature) = if fitted {
            (Cow::Owned(map.cross_fit_unless(predictions, stop)?.logits), Temperature::IDENTITY)
        } else if let Some(temperature) = map.temperature() {
            (Cow::Borrowed(predictions.logits.as_slice()), temperature)
        } else {
            (Cow::Owned(map.calibrator.apply(logits)?), Temperature::IDENTITY)
        };
        let evaluated_by = if fitted { EvaluatedBy::CrossFit } else { EvaluatedBy::OtherLabels };
        Ok(Self { logits, temperature, evaluated_by })
    }
}
