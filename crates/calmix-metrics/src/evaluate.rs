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

mod selection;

use std::borrow::Cow;
use std::cell::RefCell;

use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use crate::calibrator::CalibratorKind;
use crate::calibrator::temperature::Temperature;
use crate::error::MetricsError;
use crate::fitted_calibrator::{FittedCalibrator, FittedOn};
use crate::measure::{ClassScores, Edges, ReliabilityBin};
use crate::metrics::{EDGES, Intervals, Metrics, PreparedRows, Resampling};
use crate::predictions::{EvalModel, EvalSet, LabelledLogits, Predictions};

pub use selection::{Selected, Selection, select};

/// The metrics of one model on one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The number of training steps before the evaluation.
    pub step: u64,
    /// The evaluated split.
    pub split: EvalSet,
    /// The evaluated weights.
    pub model: EvalModel,
    /// The number of evaluated samples.
    pub samples: u64,
    /// The number of [groups](crate::groups) of these samples; `None` if each is a group of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The number of corrupt samples that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// The bin to which a confidence on an edge belongs, in every metric with bins of equal width.
    pub edges: Edges,
    /// The metrics of the network without calibration.
    pub metrics: Metrics,
    /// The accuracy of each class, in the order of the classes; `None` for a class without samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// The number of classes without samples, which the balanced error leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty_classes: u64,
    /// Recall, precision and F1 of each class, in the order of the classes; empty except at the end of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<ClassScores>,
    /// The 15 bins of equal width of a reliability diagram, including empty ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<ReliabilityBin>,
    /// The confidence intervals of the metrics; `None` except at the end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// The metrics with a fitted calibrator; `None` if none could be fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibrated>,
}

/// The labels on which a calibrator is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatedBy {
    /// Labels that did not fit it.
    OtherLabels,
    /// The labels that fitted it, each with a calibrator of the same kind fitted without it.
    CrossFit,
}

/// Metrics with a fitted calibrator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The kind of calibrator.
    pub kind: CalibratorKind,
    /// The temperature; `None` for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The labels that it was fitted on.
    pub fitted_on: FittedOn,
    /// The number of labels that it was fitted on.
    pub fitted_samples: u64,
    /// The labels on which it is evaluated here.
    pub evaluated_by: EvaluatedBy,
    /// The metrics after calibration.
    pub metrics: Metrics,
    /// The accuracy of each class; empty if the calibrator cannot change the predicted class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_accuracy: Vec<Option<f64>>,
    /// Recall, precision and F1 of each class; empty if the calibrator cannot change the predicted class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<ClassScores>,
    /// The 15 bins of equal width of its reliability diagram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<ReliabilityBin>,
    /// The confidence intervals of the metrics; `None` except at the end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
}

impl Evaluation {
    /// Returns the number of independent observations: that of the groups, or of the samples.
    pub fn observations(&self) -> u64 {
        self.groups.unwrap_or(self.samples)
    }

    /// Removes the lists, which grow with the classes: a run stores the rest for every evaluation.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        self.class_accuracy.clear();
        self.by_class.clear();
        self.bins.clear();
        if let Some(calibrated) = &mut self.calibrated {
            calibrated.class_accuracy.clear();
            calibrated.by_class.clear();
            calibrated.bins.clear();
        }
        self
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

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
    evaluation(predictions, calibration, resampling, &|| false)
}

/// Evaluates as [`evaluate()`] does; returns `None` if `stop`, which is called before every replicate and every fit, returns
/// true.
pub fn evaluate_unless(
    predictions: &Predictions,
    calibration: Option<&FittedCalibrator>,
    resampling: Option<(Resampling, Seed)>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Option<Evaluation>, MetricsError> {
    let stop = RefCell::new(stop);
    match evaluation(predictions, calibration, resampling, &|| (stop.borrow_mut())()) {
        Err(MetricsError::Stopped) => Ok(None),
        evaluation => evaluation.map(Some),
    }
}

fn evaluation(
    predictions: &Predictions,
    calibration: Option<&FittedCalibrator>,
    resampling: Option<(Resampling, Seed)>,
    stop: &dyn Fn() -> bool,
) -> Result<Evaluation, MetricsError> {
    let LabelledLogits { logits, labels, groups } = predictions.labelled()?;
    let intervals_of = |rows: &PreparedRows| -> Result<Option<Intervals>, MetricsError> {
        let Some((how, seed)) = resampling else { return Ok(None) };
        Intervals::of_rows(rows, groups, how, predictions.seed(seed), stop)
    };
    let scores_of = |rows: &PreparedRows| match resampling {
        Some((how, _)) => rows.classes.scores(groups, how.level),
        None => Ok(Vec::new()),
    };
    let raw = PreparedRows::new(logits, labels, Temperature::IDENTITY)?;
    let intervals = intervals_of(&raw)?;
    let mut calibrated = None;
    if let Some(fitted) = calibration {
        let CalibratedLogits { logits, temperature, evaluated_by } =
            CalibratedLogits::of(predictions, fitted, stop)?;
        let logits = predictions.shaped(&logits)?;
        let rows = PreparedRows::new(logits, labels, temperature)?;
        // Only vector scaling can change the predicted class.
        let changes_labels = fitted.calibrator.may_change_labels();
        calibrated = Some(Calibrated {
            kind: fitted.calibrator.kind(),
            temperature: fitted.temperature(),
            fitted_on: fitted.fitted_on,
            fitted_samples: fitted.samples,
            evaluated_by,
            intervals: intervals_of(&rows)?,
            metrics: Metrics::of_rows(&rows),
            class_accuracy: if changes_labels { rows.classes.accuracy() } else { Vec::new() },
            by_class: if changes_labels { scores_of(&rows)? } else { Vec::new() },
            bins: rows.bins(),
        });
    }
    let class_accuracy = raw.classes.accuracy();
    Ok(Evaluation {
        step: predictions.step,
        split: predictions.split,
        model: predictions.model,
        samples: labels.len() as u64,
        groups: (!groups.is_empty()).then(|| predictions.group_count() as u64),
        skipped: 0,
        edges: EDGES,
        metrics: Metrics::of_rows(&raw),
        empty_classes: class_accuracy.iter().filter(|accuracy| accuracy.is_none()).count() as u64,
        class_accuracy,
        by_class: scores_of(&raw)?,
        bins: raw.bins(),
        intervals,
        calibrated,
    })
}

/// Calibrated predictions: logits, and the temperature that they are still to be divided by.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibratedLogits<'a> {
    /// One row of logits per sample.
    pub logits: Cow<'a, [f32]>,
    /// The softmax of these logits at this temperature is the calibrated probability.
    pub temperature: Temperature,
    /// The labels on which the calibrator is evaluated.
    pub evaluated_by: EvaluatedBy,
}

impl<'a> CalibratedLogits<'a> {
    /// Calibrates predictions; if their labels fitted the calibrator, each with a calibrator fitted without it.
    ///
    /// # Errors
    /// If labels and logits do not match, a logit is not finite, the calibrator is for another number of classes, or `stop`
    /// returns true.
    pub fn of(
        predictions: &'a Predictions,
        calibrator: &FittedCalibrator,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let logits = predictions.matrix()?;
        let fitted = calibrator.fitted_on.split() == Some(predictions.split) && predictions.group_count() > 1;
        let (logits, temperature) = if fitted {
            (Cow::Owned(calibrator.cross_fit(predictions, stop)?.logits), Temperature::IDENTITY)
        } else if let Some(temperature) = calibrator.temperature() {
            (Cow::Borrowed(predictions.logits.as_slice()), temperature)
        } else {
            (Cow::Owned(calibrator.calibrator.apply(logits)?), Temperature::IDENTITY)
        };
        let evaluated_by = if fitted { EvaluatedBy::CrossFit } else { EvaluatedBy::OtherLabels };
        Ok(Self { logits, temperature, evaluated_by })
    }
}
