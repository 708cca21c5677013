//! The fitted calibrator of a model, with the labels that it was fitted on: `calibration` in `model.json`.
//!
//! Labels that fitted a calibrator cannot evaluate it: the metrics here are cross-fitted, each label with a calibrator fitted
//! without it.

use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::calibrator::cross_fit::CrossFit;
use crate::calibrator::temperature::{Temperature, TemperaturePrior};
use crate::calibrator::{Calibrator, CalibratorKind};
use crate::calibrator::{CalibratorChoice, TriedCalibrator, temperature_if_clearly_better};
use crate::error::MetricsError;
use crate::measure::nll_from_logits;
use crate::metrics::Metrics;
use crate::predictions::{EvalSet, LabelledLogits, Predictions};

/// The labels that a calibrator was fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FittedOn {
    /// Labels that the run held out.
    HeldOut,
    /// The dataset's own validation split.
    ValidationSplit,
    /// New labels, given to `calmix calibrate` after training.
    Later,
    /// The training labels, used only if a cross-fit helps and makes the model less confident.
    LabelledCrossFit,
    /// The training labels, each predicted by a head that was trained without it.
    OutOfFold,
}

/// The rule by which a calibrator was chosen and fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitRule {
    /// A temperature that minimises the summed NLL plus a penalty, which dominates if there are few labels.
    PenalisedNll,
    /// The simplest kind of calibrator, unless the cross-validated NLL of another is lower by more than a standard error.
    CrossValidatedNll,
    /// The most probable temperature under a prior for heads on frozen features, or 1 if its cross-validated gain is below a
    /// standard error.
    ClearGain,
}

impl FitRule {
    /// Fits a calibrator of this kind.
    fn fit(
        self,
        kind: CalibratorKind,
        rows: LabelledLogits<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Calibrator, MetricsError> {
        match self {
            Self::PenalisedNll | Self::CrossValidatedNll => {
                Calibrator::fit(kind, rows.logits, rows.labels, stop)
            }
            Self::ClearGain => temperature_if_clearly_better(rows, TemperaturePrior::HEADS, stop),
        }
    }
}

/// The origin of labels that were given after training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelsOrigin {
    /// The folder with the labelled images.
    pub folder: String,
    /// The fingerprint of its images and labels.
    pub dataset: String,
}

/// A fitted calibrator, the labels that it was fitted on, and the metrics before and after. Later versions may add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedCalibrator {
    /// The calibrator itself.
    pub calibrator: Calibrator,
    /// The labels that it was fitted on.
    pub fitted_on: FittedOn,
    /// The number of these labels.
    pub samples: u64,
    /// The number of their [groups](crate::groups); `None` if each label is a group of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The rule by which it was fitted.
    pub rule: FitRule,
    /// The kinds of calibrators that were tried.
    pub tried: Vec<TriedCalibrator>,
    /// The number of these labels for which it changes the predicted class; zero except for vector scaling.
    pub changed_labels: u64,
    /// The origin of the labels, if they were given after training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<LabelsOrigin>,
    /// The metrics on these labels before calibration, without the balanced error and macro F1.
    pub raw: Metrics,
    /// The metrics on these labels after calibration, each label with a calibrator fitted without it.
    pub calibrated: Metrics,
}

/// A temperature with the labels that it was fitted on: `scaling` in `result.json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// The number by which logits are divided.
    pub temperature: Temperature,
    /// The labels that it was fitted on.
    pub fitted_on: FittedOn,
    /// The number of these labels.
    pub samples: u64,
}

/// The reason why a run has no calibrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncalibrated {
    /// The number of labels that were held out.
    pub held_out: u64,
    /// The smallest number of held-out labels that a calibrator is fitted on.
    #[serde(rename = "least")]
    pub min_labels: u64,
    /// Why the training labels did not give a calibrator either.
    pub training_labels: TrainingLabels,
}

/// The reason why no calibrator was fitted on the training labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingLabels {
    /// There are too few of them.
    TooFew,
    /// A cross-fit does not help on the labels that were left out.
    NoHelp,
    /// They would make the model more confident: it was trained on them and does better on them than on other samples.
    #[serde(rename = "surer")]
    MoreConfident,
}

/// A fitted calibrator, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Fitted {
    /// The fitted calibrator.
    Calibrator(Box<FittedCalibrator>),
    /// No calibrator was fitted.
    Uncalibrated(Uncalibrated),
}

impl FittedOn {
    /// Returns the split whose metrics need a cross-fit, because its labels fitted the calibrator.
    pub fn split(self) -> Option<EvalSet> {
        match self {
            Self::HeldOut | Self::ValidationSplit => Some(EvalSet::Validation),
            Self::LabelledCrossFit => Some(EvalSet::Labelled),
            Self::OutOfFold => Some(EvalSet::OutOfFold),
            Self::Later => None,
        }
    }
}

impl Fitted {
    /// Fits on labels that the model was not trained on, if there are enough for a temperature, otherwise by cross-fitting
    /// a temperature on those that it was trained on.
    ///
    /// In the latter case, only a fit that makes the model less confident is kept (on Fashion-MNIST with 25 labels per class,
    /// a temperature of 0.60 raised the ECE of the test split from 10 to 17%).
    ///
    /// # Errors
    /// If labels and logits do not match, a logit is not finite, or `stop` returns true.
    pub fn of(
        held_out: Option<(&Predictions, FittedOn)>,
        labelled: Option<&Predictions>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let min_labels = CalibratorKind::Temperature.min_labels();
        if let Some((held_out, on)) = held_out.filter(|(held_out, _)| held_out.group_count() >= min_labels) {
            return Ok(Self::Calibrator(Box::new(FittedCalibrator::fit(held_out, on, stop)?)));
        }
        let uncalibrated = |training_labels| {
            let held_out = held_out.map_or(0, |(held_out, _)| held_out.group_count() as u64);
            Ok(Self::Uncalibrated(Uncalibrated { held_out, min_labels: min_labels as u64, training_labels }))
        };
        let Some(labelled) = labelled.filter(|labelled| labelled.group_count() >= min_labels) else {
            return uncalibrated(TrainingLabels::TooFew);
        };
        let rows = labelled.labelled()?;
        let fit = |rows: LabelledLogits<'_>| {
            Calibrator::fit(CalibratorKind::Temperature, rows.logits, rows.labels, stop)
        };
        let folds = CrossFit::with_five_folds(fit, rows)?;
        if folds.mean_nll() >= nll_from_logits(rows.logits, rows.labels, 1.0)? {
            return uncalibrated(TrainingLabels::NoHelp);
        }
        let fitted = FittedCalibrator::with(labelled, fit(rows)?, &folds, FittedOn::LabelledCrossFit)?;
        match fitted.temperature() {
            Some(t) if t.value() > 1.0 && !t.is_at_bound() => Ok(Self::Calibrator(Box::new(fitted))),
            _ => uncalibrated(TrainingLabels::MoreConfident),
        }
    }

    /// Returns the calibrator, if any.
    pub fn calibrator(&self) -> Option<&FittedCalibrator> {
        match self {
            Self::Calibrator(fitted) => Some(fitted),
            Self::Uncalibrated(_) => None,
        }
    }

    /// Returns why there is no calibrator; `None` if there is one.
    pub fn reason(&self) -> Option<Uncalibrated> {
        match self {
            Self::Calibrator(_) => None,
            Self::Uncalibrated(reason) => Some(*reason),
        }
    }
}

impl FittedCalibrator {
    /// Chooses a kind of calibrator and fits it on labels that the model was not trained on.
    ///
    /// # Errors
    /// If there are fewer than two labels, labels and logits do not match, a logit is not finite, or `stop` returns true: many
    /// labels of many classes take minutes.
    pub fn fit(
        predictions: &Predictions,
        on: FittedOn,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let rows = predictions.labelled()?;
        let CalibratorChoice { kind, cross_fit, tried } = CalibratorChoice::of(rows, stop)?;
        let calibrator = Calibrator::fit(kind, rows.logits, rows.labels, stop)?;
        let mut fitted = Self::with(predictions, calibrator, &cross_fit, on)?;
        if tried.len() > 1 {
            fitted.tried = tried;
            fitted.rule = FitRule::CrossValidatedNll;
        }
        Ok(fitted)
    }

    /// Fits a temperature on out-of-fold predictions, each by a head trained without the label; if it does not clearly help,
    /// the temperature is 1. Returns the cross-fit of the labels too: computing it again takes as long as the fit.
    ///
    /// # Errors
    /// If labels and logits do not match, there are fewer than two, or `stop` returns true.
    pub fn fit_out_of_fold(
        predictions: &Predictions,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Self, CrossFit), MetricsError> {
        let rows = predictions.labelled()?;
        let rule = FitRule::ClearGain;
        let fit = |rows: LabelledLogits<'_>| rule.fit(CalibratorKind::Temperature, rows, stop);
        let folds = CrossFit::with_five_folds(fit, rows)?;
        let fitted = Self::with(predictions, fit(rows)?, &folds, FittedOn::OutOfFold)?;
        Ok((Self { rule, ..fitted }, folds))
    }

    fn with(
        predictions: &Predictions,
        calibrator: Calibrator,
        folds: &CrossFit,
        on: FittedOn,
    ) -> Result<Self, MetricsError> {
        let logits = predictions.matrix()?;
        let labels = predictions.labels.as_slice();
        let kind = calibrator.kind();
        let calibrated = calibrator.apply(logits)?;
        let changed = logits.iter().zip(calibrated.chunks(logits.width().max(1)));
        let changed = changed.filter(|(raw, calibrated)| argmax(raw) != argmax(calibrated)).count();
        // The files of a model hold these metrics: without later ones, they keep the bytes of earlier versions.
        let described = |logits: Matrix<'_>| -> Result<Metrics, MetricsError> {
            let metrics = Metrics::of(logits, labels, Temperature::IDENTITY)?;
            Ok(Metrics { balanced_error: None, macro_f1: None, ..metrics })
        };
        Ok(Self {
            calibrator,
            fitted_on: on,
            samples: labels.len() as u64,
            groups: (!predictions.groups.is_empty()).then(|| predictions.group_count() as u64),
            rule: FitRule::PenalisedNll,
            tried: vec![TriedCalibrator { kind, nll: folds.mean_nll() }],
            changed_labels: changed as u64,
            origin: None,
            raw: described(logits)?,
            calibrated: described(predictions.shaped(&folds.logits)?)?,
        })
    }

    /// Cross-fits the labels that fitted the calibrator, each with a fit of the same kind and rule without it.
    ///
    /// # Errors
    /// If labels and logits do not match, there are fewer than two, or `stop` returns true.
    pub fn cross_fit(
        &self,
        predictions: &Predictions,
        stop: &dyn Fn() -> bool,
    ) -> Result<CrossFit, MetricsError> {
        let kind = self.calibrator.kind();
        CrossFit::with_five_folds(|rows| self.rule.fit(kind, rows, stop), predictions.labelled()?)
    }

    /// Returns the temperature, if the calibrator is one.
    pub fn temperature(&self) -> Option<Temperature> {
        match &self.calibrator {
            Calibrator::Temperature { temperature } => Some(*temperature),
            Calibrator::Vector(_) | Calibrator::Isotonic(_) => None,
        }
    }

    /// Returns the entry `scaling` of `result.json`, if the calibrator is a temperature.
    pub fn scaling(&self) -> Option<Scaling> {
        let fitted_on = self.fitted_on;
        let samples = self.samples;
        self.temperature().map(|temperature| Scaling { temperature, fitted_on, samples })
    }
}

#[cfg(test)]
mod tests;
