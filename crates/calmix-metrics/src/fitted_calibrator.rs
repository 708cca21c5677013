//! The map that calibrates a model, with the labels that fitted it: `calibration` in `model.json`.
//!
//! Labels that fitted a map do not evaluate it: the metrics here are cross-fitted, each label by a map fitted without it.

use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::calibrator::any_calibrator::{Calibrator, CalibratorKind};
use crate::calibrator::cross_fit::CrossFit;
use crate::calibrator::temperature::{Temperature, TemperaturePrior};
use crate::calibrator::{CalibratorChoice, TriedCalibrator, temperature_where_it_helps};
use crate::error::CalibrationError;
use crate::measure::nll_from_logits;
use crate::metrics::Metrics;
use crate::predictions::{EvalSet, Predictions};

/// Which labels fitted a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FittedOn {
    /// Labels that the run held out.
    HeldOut,
    /// The dataset's own validation split.
    ValidationSplit,
    /// Labels that came after training: `calmix calibrate`.
    Later,
    /// The labels that training saw, and only as far as a cross-fit helps and makes the model less sure.
    LabelledCrossFit,
    /// The labels that training saw, each by a head that was trained without it.
    OutOfFold,
}

/// How a map was chosen and fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitRule {
    /// A temperature, by the summed NLL and a penalty that decides where labels are few.
    PenalisedNll,
    /// The simplest kind of map, unless the cross-validated NLL of another is lower by more than a standard error.
    CrossValidatedNll,
    /// A temperature, the most probable one under a prior for heads on frozen features, unless its cross-validated gain is
    /// below a standard error: then 1.
    ClearGain,
}

impl FitRule {
    /// Fits a map of this kind.
    fn fit(
        self,
        kind: CalibratorKind,
        logits: Matrix<'_>,
        labels: &[u32],
    ) -> Result<Calibrator, CalibrationError> {
        match self {
            Self::PenalisedNll | Self::CrossValidatedNll => Calibrator::fit(kind, logits, labels),
            Self::ClearGain => temperature_where_it_helps(logits, labels, TemperaturePrior::HEADS),
        }
    }
}

/// Where labels that came after training are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelsOrigin {
    /// The folder.
    pub folder: String,
    /// The fingerprint of its images and labels.
    pub dataset: String,
}

/// A fitted map, what fitted it, and what it is worth. Later versions may add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedCalibrator {
    /// The map.
    pub calibrator: Calibrator,
    /// Which labels fitted it.
    pub fitted_on: FittedOn,
    /// How many.
    pub samples: u64,
    /// By which rule.
    pub rule: FitRule,
    /// The kinds of maps that were tried.
    pub tried: Vec<TriedCalibrator>,
    /// On how many of these labels the map changes the winning class: none, but by vector scaling.
    pub changed_labels: u64,
    /// Where the labels are from, if they came later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<LabelsOrigin>,
    /// The metrics of these labels before.
    pub raw: Metrics,
    /// Their metrics after, each evaluated by a map that was fitted without it.
    pub calibrated: Metrics,
}

/// A temperature with the labels it rests on: `scaling` in `result.json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// The temperature.
    pub temperature: Temperature,
    /// On what it was fitted.
    pub fitted_on: FittedOn,
    /// On how many samples.
    pub samples: u64,
}

/// Why a run has no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncalibrated {
    /// How many labels were held out.
    pub held_out: u64,
    /// From how many on a map is fitted.
    pub least: u64,
    /// What the labels say that training saw.
    pub training_labels: TrainingLabels,
}

/// Why the labels that training saw fit no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingLabels {
    /// There are too few of them.
    TooFew,
    /// A fit does not help those that it has not seen.
    NoHelp,
    /// They would make the model surer: it was trained on them, and looks better on them than on any others.
    Surer,
}

/// A map, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Fitted {
    /// The map.
    Map(Box<FittedCalibrator>),
    /// There is none.
    Nothing(Uncalibrated),
}

impl FittedOn {
    /// The split whose metrics need a cross-fit, since its labels fitted the map.
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
    /// Of the latter only a fit that makes the model less sure is kept (on Fashion-MNIST with 25 labels per class another
    /// one, 0.60, raised the ECE of the test split from 10 to 17%).
    ///
    /// # Errors
    /// If labels and logits do not fit each other, or a logit is not finite.
    pub fn of(
        held_out: Option<(&Predictions, FittedOn)>,
        labelled: Option<&Predictions>,
    ) -> Result<Self, CalibrationError> {
        let least = CalibratorKind::Temperature.least_labels();
        if let Some((held_out, on)) = held_out.filter(|(held_out, _)| held_out.labels.len() >= least) {
            return Ok(Self::Map(Box::new(FittedCalibrator::fit(held_out, on)?)));
        }
        let nothing = |training_labels| {
            let held_out = held_out.map_or(0, |(held_out, _)| held_out.labels.len() as u64);
            Ok(Self::Nothing(Uncalibrated { held_out, least: least as u64, training_labels }))
        };
        let Some(labelled) = labelled.filter(|labelled| labelled.labels.len() >= least) else {
            return nothing(TrainingLabels::TooFew);
        };
        let (logits, labels) = (labelled.matrix()?, labelled.labels.as_slice());
        let fit =
            |logits: Matrix<'_>, labels: &[u32]| Calibrator::fit(CalibratorKind::Temperature, logits, labels);
        let folds = CrossFit::in_five(fit, logits, labels)?;
        if folds.mean_nll() >= nll_from_logits(logits, labels, 1.0)? {
            return nothing(TrainingLabels::NoHelp);
        }
        let map = FittedCalibrator::with(labelled, fit(logits, labels)?, &folds, FittedOn::LabelledCrossFit)?;
        match map.temperature() {
            Some(t) if t.value() > 1.0 && !t.is_at_bound() => Ok(Self::Map(Box::new(map))),
            _ => nothing(TrainingLabels::Surer),
        }
    }

    /// The map, if there is one.
    pub fn map(&self) -> Option<&FittedCalibrator> {
        match self {
            Self::Map(map) => Some(map),
            Self::Nothing(_) => None,
        }
    }

    /// Why there is none.
    pub fn nothing(&self) -> Option<Uncalibrated> {
        match self {
            Self::Map(_) => None,
            Self::Nothing(why) => Some(*why),
        }
    }
}

impl FittedCalibrator {
    /// Chooses a kind of map and fits it on labels that the model was not trained on.
    ///
    /// # Errors
    /// If there are fewer than two labels, labels and logits do not fit each other, or a logit is not finite.
    pub fn fit(said: &Predictions, on: FittedOn) -> Result<Self, CalibrationError> {
        let CalibratorChoice { kind, cross_fit, tried } = CalibratorChoice::of(said.matrix()?, &said.labels)?;
        let calibrator = Calibrator::fit(kind, said.matrix()?, &said.labels)?;
        let mut map = Self::with(said, calibrator, &cross_fit, on)?;
        if tried.len() > 1 {
            map.tried = tried;
            map.rule = FitRule::CrossValidatedNll;
        }
        Ok(map)
    }

    /// Fits a temperature to what heads said about labels that each was trained without, where that clearly helps; else the
    /// temperature is 1.
    ///
    /// # Errors
    /// If labels and logits do not fit each other, or there are fewer than two.
    pub fn fit_out_of_fold(said: &Predictions) -> Result<Self, CalibrationError> {
        let (logits, labels) = (said.matrix()?, said.labels.as_slice());
        let rule = FitRule::ClearGain;
        let fit = |logits: Matrix<'_>, labels: &[u32]| rule.fit(CalibratorKind::Temperature, logits, labels);
        let folds = CrossFit::in_five(fit, logits, labels)?;
        let map = Self::with(said, fit(logits, labels)?, &folds, FittedOn::OutOfFold)?;
        Ok(Self { rule, ..map })
    }

    fn with(
        said: &Predictions,
        calibrator: Calibrator,
        folds: &CrossFit,
        on: FittedOn,
    ) -> Result<Self, CalibrationError> {
        let (logits, labels) = (said.matrix()?, said.labels.as_slice());
        let kind = calibrator.kind();
        let mapped = calibrator.apply(logits)?;
        let changed = logits.iter().zip(mapped.chunks(logits.width().max(1)));
        let changed = changed.filter(|(raw, mapped)| argmax(raw) != argmax(mapped)).count();
        Ok(Self {
            calibrator,
            fitted_on: on,
            samples: labels.len() as u64,
            rule: FitRule::PenalisedNll,
            tried: vec![TriedCalibrator { kind, nll: folds.mean_nll() }],
            changed_labels: changed as u64,
            origin: None,
            raw: Metrics::of(logits, labels, Temperature::IDENTITY)?,
            calibrated: Metrics::of(said.shaped(&folds.logits)?, labels, Temperature::IDENTITY)?,
        })
    }

    /// Calibrates the labels that fitted the map again, each by a fit of the same kind and rule without it.
    ///
    /// # Errors
    /// If labels and logits do not fit each other, or there are fewer than two.
    pub fn cross_fit(&self, said: &Predictions) -> Result<CrossFit, CalibrationError> {
        let fit = |logits: Matrix<'_>, labels: &[u32]| self.rule.fit(self.calibrator.kind(), logits, labels);
        CrossFit::in_five(fit, said.matrix()?, &said.labels)
    }

    /// The temperature, if the map is one.
    pub fn temperature(&self) -> Option<Temperature> {
        match &self.calibrator {
            Calibrator::Temperature { temperature } => Some(*temperature),
            Calibrator::Vector(_) | Calibrator::Isotonic(_) => None,
        }
    }

    /// As `scaling` in `result.json`, if the map is a temperature.
    pub fn scaling(&self) -> Option<Scaling> {
        let (fitted_on, samples) = (self.fitted_on, self.samples);
        self.temperature().map(|temperature| Scaling { temperature, fitted_on, samples })
    }
}

#[cfg(test)]
mod tests;
