//! The fitted calibrator of a model, with the labels that it was fitted on: `calibration` in `model.json`.
//!
//! Labels that fitted a calibrator cannot evaluate it: the metrics here are cross-fitted, each label with a calibrator fitted
//! without it.

use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::calibrator::any_calibrator::{Calibrator, CalibratorKind};
use crate::calibrator::cross_fit::CrossFit;
use crate::calibrator::temperature::{Temperature, TemperaturePrior};
use crate::calibrator::{CalibratorChoice, TriedCalibrator, temperature_where_it_helps};
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
                Calibrator::fit_unless(kind, rows.logits, rows.labels, stop)
            }
            Self::ClearGain => temperature_where_it_helps(rows, TemperaturePrior::HEADS, stop),
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
    /// The metrics on these labels before calibration.
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
    pub least: u64,
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
    Surer,
}

/// A fitted calibrator, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Fitted {
    /// The fitted calibrator.
    Map(Box<FittedCalibrator>),
    /// There is none.
    Nothing(Uncalibrated),
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
    /// If labels and logits do not match, or a logit is not finite.
    pub fn of(
        held_out: Option<(&Predictions, FittedOn)>,
        labelled: Option<&Predictions>,
    ) -> Result<Self, MetricsError> {
        Self::of_unless(held_out, labelled, &|| false)
    }

    /// Fits as [`of`](Self::of) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`of`](Self::of), and [`MetricsError::Stopped`].
    pub fn of_unless(
        held_out: Option<(&Predictions, FittedOn)>,
        labelled: Option<&Predictions>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let least = CalibratorKind::Temperature.least_labels();
        if let Some((held_out, on)) = held_out.filter(|(held_out, _)| held_out.group_count() >= least) {
            return Ok(Self::Map(Box::new(FittedCalibrator::fit_unless(held_out, on, stop)?)));
        }
        let nothing = |training_labels| {
            let held_out = held_out.map_or(0, |(held_out, _)| held_out.group_count() as u64);
            Ok(Self::Nothing(Uncalibrated { held_out, least: least as u64, training_labels }))
        };
        let Some(labelled) = labelled.filter(|labelled| labelled.group_count() >= least) else {
            return nothing(TrainingLabels::TooFew);
        };
        let rows = labelled.labelled()?;
        let fit = |rows: LabelledLogits<'_>| {
            Calibrator::fit_unless(CalibratorKind::Temperature, rows.logits, rows.labels, stop)
        };
        let folds = CrossFit::in_five(fit, rows)?;
        if folds.mean_nll() >= nll_from_logits(rows.logits, rows.labels, 1.0)? {
            return nothing(TrainingLabels::NoHelp);
        }
        let map = FittedCalibrator::with(labelled, fit(rows)?, &folds, FittedOn::LabelledCrossFit)?;
        match map.temperature() {
            Some(t) if t.value() > 1.0 && !t.is_at_bound() => Ok(Self::Map(Box::new(map))),
            _ => nothing(TrainingLabels::Surer),
        }
    }

    /// Returns the calibrator, if there is one.
    pub fn map(&self) -> Option<&FittedCalibrator> {
        match self {
            Self::Map(map) => Some(map),
            Self::Nothing(_) => None,
        }
    }

    /// Returns why there is no calibrator; `None` if there is one.
    pub fn nothing(&self) -> Option<Uncalibrated> {
        match self {
            Self::Map(_) => None,
            Self::Nothing(why) => Some(*why),
        }
    }
}

impl FittedCalibrator {
    /// Chooses a kind of calibrator and fits it on labels that the model was not trained on.
    ///
    /// # Errors
    /// If there are fewer than two labels, labels and logits do not match, or a logit is not finite.
    pub fn fit(predictions: &Predictions, on: FittedOn) -> Result<Self, MetricsError> {
        Self::fit_unless(predictions, on, &|| false)
    }

    /// Fits as [`fit`](Self::fit) does, unless `stop` returns true: many labels of many classes take minutes.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`MetricsError::Stopped`].
    pub fn fit_unless(
        predictions: &Predictions,
        on: FittedOn,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        let rows = predictions.labelled()?;
        let CalibratorChoice { kind, cross_fit, tried } = CalibratorChoice::of_unless(rows, stop)?;
        let calibrator = Calibrator::fit_unless(kind, rows.logits, rows.labels, stop)?;
        let mut map = Self::with(predictions, calibrator, &cross_fit, on)?;
        if tried.len() > 1 {
            map.tried = tried;
            map.rule = FitRule::CrossValidatedNll;
        }
        Ok(map)
    }

    /// Fits a temperature on out-of-fold predictions, each by a head trained without the label; if it does not clearly help,
    /// the temperature is 1.
    ///
    /// # Errors
    /// If labels and logits do not match, or there are fewer than two.
    pub fn fit_out_of_fold(predictions: &Predictions) -> Result<Self, MetricsError> {
        Self::fit_out_of_fold_unless(predictions, &|| false)
    }

    /// Fits as [`fit_out_of_fold`](Self::fit_out_of_fold) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`fit_out_of_fold`](Self::fit_out_of_fold), and [`MetricsError::Stopped`].
    pub fn fit_out_of_fold_unless(
        predictions: &Predictions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MetricsError> {
        Ok(Self::cross_fitted_out_of_fold(predictions, stop)?.0)
    }

    /// Fits as [`fit_out_of_fold_unless`](Self::fit_out_of_fold_unless) does, and returns the cross-fit of the labels too:
    /// computing it again takes as long as the fit.
    ///
    /// # Errors
    /// As [`fit_out_of_fold_unless`](Self::fit_out_of_fold_unless).
    pub fn cross_fitted_out_of_fold(
        predictions: &Predictions,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Self, CrossFit), MetricsError> {
        let rows = predictions.labelled()?;
        let rule = FitRule::ClearGain;
        let fit = |rows: LabelledLogits<'_>| rule.fit(CalibratorKind::Temperature, rows, stop);
        let folds = CrossFit::in_five(fit, rows)?;
        let map = Self::with(predictions, fit(rows)?, &folds, FittedOn::OutOfFold)?;
        Ok((Self { rule, ..map }, folds))
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
        let mapped = calibrator.apply(logits)?;
        let changed = logits.iter().zip(mapped.chunks(logits.width().max(1)));
        let changed = changed.filter(|(raw, mapped)| argmax(raw) != argmax(mapped)).count();
        Ok(Self {
            calibrator,
            fitted_on: on,
            samples: labels.len() as u64,
            groups: (!predictions.groups.is_empty()).then(|| predictions.group_count() as u64),
            rule: FitRule::PenalisedNll,
            tried: vec![TriedCalibrator { kind, nll: folds.mean_nll() }],
            changed_labels: changed as u64,
            origin: None,
            raw: Metrics::of(logits, labels, Temperature::IDENTITY)?,
            calibrated: Metrics::of(predictions.shaped(&folds.logits)?, labels, Temperature::IDENTITY)?,
        })
    }

    /// Cross-fits the labels that fitted the calibrator, each with a fit of the same kind and rule without it.
    ///
    /// # Errors
    /// If labels and logits do not match, or there are fewer than two.
    pub fn cross_fit(&self, predictions: &Predictions) -> Result<CrossFit, MetricsError> {
        self.cross_fit_unless(predictions, &|| false)
    }

    /// Cross-fits as [`cross_fit`](Self::cross_fit) does, unless `stop` returns true.
    ///
    /// # Errors
    /// As [`cross_fit`](Self::cross_fit), and [`MetricsError::Stopped`].
    pub fn cross_fit_unless(
        &self,
        predictions: &Predictions,
        stop: &dyn Fn() -> bool,
    ) -> Result<CrossFit, MetricsError> {
        let kind = self.calibrator.kind();
        CrossFit::in_five(|rows| self.rule.fit(kind, rows, stop), predictions.labelled()?)
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
