//! A head with its calibrator and its held-out predictions.

use std::collections::{BTreeMap, BTreeSet};

use calmix_metrics::calibrator::CalibratorKind;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator, FittedOn, TrainingLabels, Uncalibrated};
use calmix_metrics::groups::group_means;
use calmix_metrics::held_out::UnseenLabel;
use calmix_metrics::measure::nll_of_rows;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};

use super::candidate::Candidate;
use crate::error::HeadError;
use crate::network::{Head, HeadShape};
use crate::progress::FitProgress;
use crate::samples::HeadSamples;
use crate::samples::ValidationSamples;
use crate::training::TrainedHead;

/// A head with its calibrator and its predictions for labels that it was trained without.
#[derive(Debug, Clone)]
pub struct FittedHead {
    /// The kind of head.
    pub candidate: Candidate,
    /// The trained head.
    pub trained: TrainedHead,
    /// The predictions for the validation samples, or those of the heads of folds for the labels, by ascending id.
    pub predictions: Predictions,
    /// The calibrator that was fitted on them.
    pub calibrator: Fitted,
    /// The NLL of each of these labels by a calibrator that was fitted without it.
    pub nll: Vec<f64>,
    /// The labels whose class has none in another fold, by ascending id: no head of a fold could predict them.
    pub unseen: Vec<UnseenLabel>,
    /// The predictions of the heads of folds for the labels that were chosen, by ascending id. They fit and compare nothing.
    pub chosen: Predictions,
}

/// What the heads of folds, or the head of all rows, predicted for labels that it was trained without.
pub(crate) struct HeldOutLabels {
    pub(crate) predictions: Predictions,
    pub(crate) unseen: Vec<UnseenLabel>,
    pub(crate) chosen: Predictions,
}

impl FittedHead {
    pub(crate) fn new(
        candidate: Candidate,
        trained: TrainedHead,
        held_out: HeldOutLabels,
        progress: &FitProgress<'_>,
    ) -> Result<Self, HeadError> {
        let HeldOutLabels { predictions, unseen, chosen } = held_out;
        let stop = || progress.check_stop().is_err();
        let labels = predictions.group_count();
        let min_labels = min_labels();
        let calibrator;
        let nll;
        if labels < min_labels {
            let training_labels = TrainingLabels::TooFew;
            let reason =
                Uncalibrated { held_out: labels as u64, min_labels: min_labels as u64, training_labels };
            calibrator = Fitted::Uncalibrated(reason);
            nll = nll_of_rows(predictions.matrix()?, &predictions.labels, 1.0)?;
        } else if predictions.split == EvalSet::Validation {
            let fitted = FittedCalibrator::fit(&predictions, FittedOn::ValidationSplit, &stop)?;
            nll = fitted.cross_fit(&predictions, &stop)?.nll;
            calibrator = Fitted::Calibrator(Box::new(fitted));
        } else {
            let (fitted, cross_fit) = FittedCalibrator::fit_out_of_fold(&predictions, &stop)?;
            nll = cross_fit.nll;
            calibrator = Fitted::Calibrator(Box::new(fitted));
        }
        Ok(Self { candidate, trained, predictions, calibrator, nll, unseen, chosen })
    }

    /// Averages a linear head and another one, each at the temperature of its calibrator.
    pub(crate) fn average(
        candidate: Candidate,
        first: &Self,
        second: &Self,
        progress: &FitProgress<'_>,
    ) -> Result<Self, HeadError> {
        let temperatures = [first.temperature(), second.temperature()];
        let trained =
            TrainedHead::without_steps(average_head(&first.trained.ema, &second.trained.ema, temperatures)?);
        let of_both = |first: &Predictions, second: &Predictions| {
            let logits = average(&first.logits, &second.logits, temperatures);
            Predictions { logits, ..first.clone() }
        };
        let mut unseen = first.unseen.clone();
        for (label, other) in unseen.iter_mut().zip(&second.unseen) {
            label.logits = average(&label.logits, &other.logits, temperatures);
        }
        let held_out = HeldOutLabels {
            predictions: of_both(&first.predictions, &second.predictions),
            unseen,
            chosen: of_both(&first.chosen, &second.chosen),
        };
        Self::new(candidate, trained, held_out, progress)
    }

    /// Returns the temperature of its calibrator; 1 if it has none. The most likely temperature would not do: if the few labels
    /// are all predicted right, it is the lowest allowed one, and the average is certain of everything.
    pub(super) fn temperature(&self) -> f64 {
        let temperature = self.calibrator.calibrator().and_then(FittedCalibrator::temperature);
        temperature.map_or(1.0, Temperature::value)
    }

    /// Returns the mean NLL of the labels that it was trained without, each group counting once; `None` if there are none.
    pub fn mean_nll(&self) -> Option<f64> {
        mean(&self.nll_of_groups())
    }

    /// Returns the mean NLL of each group of these labels.
    pub(crate) fn nll_of_groups(&self) -> Vec<f64> {
        group_means(&self.nll, &self.predictions.groups)
    }
}

/// Averages the logits of a linear head and of another one, which may have a hidden layer, each divided by its temperature.
fn average_head(linear: &Head, other: &Head, temperatures: [f64; 2]) -> Result<Head, HeadError> {
    let HeadShape { width, classes, .. } = linear.shape();
    let Some(units) = other.shape().hidden else {
        return Head::new(linear.shape(), average(linear.numbers(), other.numbers(), temperatures));
    };
    // The layer of the other head gets a unit for each number of the vector, which is at most 1 and at least −1 in vectors of unit
    // length: 1 is added before the rectifier, and subtracted from the biases of the classes.
    let shape = HeadShape { width, hidden: Some(units + width), classes };
    let [linear_scale, other_scale] = temperatures.map(|temperature| 0.5 / temperature);
    let (linear_weights, linear_biases) = linear.numbers().split_at(classes * width);
    let (matrices, other_biases) = other.numbers().split_at(units * width + classes * units);
    let (hidden_weights, other_weights) = matrices.split_at(units * width);
    let (hidden_biases, other_biases) = other_biases.split_at(units);
    let mut numbers = Vec::with_capacity(shape.numbers());
    numbers.extend_from_slice(hidden_weights);
    for unit in 0..width {
        numbers.extend((0..width).map(|column| if column == unit { 1.0_f32 } else { 0.0 }));
    }
    for (other, linear) in other_weights.chunks_exact(units).zip(linear_weights.chunks_exact(width)) {
        numbers.extend(other.iter().map(|&weight| (f64::from(weight) * other_scale) as f32));
        numbers.extend(linear.iter().map(|&weight| (f64::from(weight) * linear_scale) as f32));
    }
    numbers.extend_from_slice(hidden_biases);
    numbers.extend(std::iter::repeat_n(1.0_f32, width));
    let biases = other_biases.iter().zip(linear_biases).zip(linear_weights.chunks_exact(width));
    numbers.extend(biases.map(|((&other, &linear), weights)| {
        let added: f64 =
            weights.iter().map(|&weight| f64::from((f64::from(weight) * linear_scale) as f32)).sum();
        (f64::from(other) * other_scale + f64::from(linear) * linear_scale - added) as f32
    }));
    Head::new(shape, numbers)
}

/// Averages two rows of numbers, each divided by its temperature.
///
/// For logits, this averages the log-probabilities, up to a number that all classes share; for the weights of two linear heads,
/// the result is the head with these logits.
pub(super) fn average(first: &[f32], second: &[f32], temperatures: [f64; 2]) -> Vec<f32> {
    let [first_scale, second_scale] = temperatures.map(|temperature| 0.5 / temperature);
    let pairs = first.iter().zip(second);
    pairs.map(|(&a, &b)| (f64::from(a) * first_scale + f64::from(b) * second_scale) as f32).collect()
}

/// Returns the minimum number of labels that a calibrator is fitted on.
pub(crate) fn min_labels() -> usize {
    CalibratorKind::Temperature.min_labels()
}

/// Returns the mean; `None` without numbers.
pub(crate) fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The out-of-fold logits of rows.
pub(crate) type FoldLogits = BTreeMap<usize, Vec<f32>>;

/// Returns the out-of-fold predictions of the labels that were not chosen and whose class the head of the fold was trained on, by
/// ascending id.
pub(crate) fn out_of_fold(
    samples: &HeadSamples<'_>,
    rows: FoldLogits,
    unseen: &BTreeSet<usize>,
    step: u64,
) -> Predictions {
    let rows = rows.into_iter().filter(|(row, _)| !unseen.contains(row) && !samples.is_chosen(*row));
    of_rows(samples, rows, EvalSet::OutOfFold, step)
}

/// Returns the out-of-fold predictions of the labels that were chosen and whose class the head of the fold was trained on, by
/// ascending id.
pub(crate) fn chosen_labels(
    samples: &HeadSamples<'_>,
    rows: &FoldLogits,
    unseen: &BTreeSet<usize>,
    step: u64,
) -> Predictions {
    let chosen = samples.chosen.iter().filter(|row| !unseen.contains(row));
    let chosen = chosen.filter_map(|&row| Some((row, rows.get(&row)?.clone())));
    of_rows(samples, chosen, EvalSet::Chosen, step)
}

fn of_rows(
    samples: &HeadSamples<'_>,
    rows: impl Iterator<Item = (usize, Vec<f32>)>,
    split: EvalSet,
    step: u64,
) -> Predictions {
    let mut predictions = empty(samples, split, step);
    for (row, logits) in rows {
        predictions.ids.push(samples.ids[row]);
        predictions.labels.push(samples.label(row).unwrap_or_default());
        predictions.logits.extend(logits);
        predictions.groups.extend(samples.groups.get(row));
    }
    predictions
}

/// Returns the out-of-fold predictions of the labels that were not chosen and whose class the head of the fold was not trained on, by
/// ascending id.
pub(crate) fn unseen_labels(
    samples: &HeadSamples<'_>,
    rows: &FoldLogits,
    unseen: &BTreeSet<usize>,
) -> Vec<UnseenLabel> {
    let mut labels = Vec::new();
    for (&row, logits) in rows.iter().filter(|(row, _)| unseen.contains(row) && !samples.is_chosen(**row)) {
        let label = samples.label(row).unwrap_or_default();
        let group = samples.groups.get(row).copied().unwrap_or_default();
        labels.push(UnseenLabel { id: samples.ids[row], label, group, logits: logits.clone() });
    }
    labels
}

/// Predicts the validation samples.
pub(crate) fn predictions_of(
    samples: &HeadSamples<'_>,
    validation: ValidationSamples<'_>,
    head: &Head,
    step: u64,
) -> Result<Predictions, HeadError> {
    let ValidationSamples { ids, vectors, labels, groups } = validation;
    if ids.len() != labels.len() || vectors.rows() != labels.len() || vectors.width() != samples.width() {
        return Err(HeadError::Input(
            "ids, vectors and labels of the validation samples do not fit".to_owned(),
        ));
    }
    Ok(Predictions {
        ids: ids.to_vec(),
        labels: labels.to_vec(),
        logits: head.forward(vectors.data())?.logits,
        groups: groups.to_vec(),
        ..empty(samples, EvalSet::Validation, step)
    })
}

fn empty(samples: &HeadSamples<'_>, split: EvalSet, step: u64) -> Predictions {
    Predictions {
        step,
        split,
        model: EvalModel::Ema,
        classes: samples.classes.to_vec(),
        ids: Vec::new(),
        labels: Vec::new(),
        logits: Vec::new(),
        groups: Vec::new(),
    }
}
