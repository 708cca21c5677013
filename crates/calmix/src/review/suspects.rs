//! Labels that may be wrong: the model predicted another class without having seen them, or an identical sample has another label.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use calmix_data::dataset::Dataset;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_run::read;

use super::pool::Pool;

/// What a model predicted for a label that it was trained without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeldOutPrediction {
    pub(crate) id: u64,
    pub(crate) label: u32,
    pub(crate) predicted: u32,
    /// The calibrated confidence in the predicted class.
    pub(crate) confidence: f64,
    /// The logit of the label minus the highest other one; negative if another class was predicted.
    pub(crate) margin: f64,
}

/// Reads what the model of a finished run predicted for labels that it was trained without: those out of fold, chosen ones
/// included, or those of the validation split. The labels that fit the model least come first.
pub(crate) fn held_out_predictions(run: &Path) -> Result<Vec<HeldOutPrediction>> {
    let Some(result) = read::result(run)? else { return Ok(Vec::new()) };
    let calibration = read::model_info(run)?.calibration;
    let held_out = [EvalSet::OutOfFold, EvalSet::Validation];
    let evaluations = result.evaluations.iter();
    let evaluated = evaluations
        .filter(|seen| seen.model == EvalModel::Ema && held_out.contains(&seen.split))
        .map(|seen| read::predictions_of(run, seen));
    let mut predictions = evaluated.collect::<Result<Vec<_>, _>>()?;
    predictions.push(read::predictions_of_chosen(run, result.step)?);
    let mut found = Vec::new();
    for predictions in predictions.into_iter().flatten() {
        found.extend(of_predictions(&predictions, calibration.as_ref())?);
    }
    found.sort_by(|a, b| a.margin.total_cmp(&b.margin).then(a.id.cmp(&b.id)));
    Ok(found)
}

fn of_predictions(
    predictions: &Predictions,
    calibration: Option<&FittedCalibrator>,
) -> Result<Vec<HeldOutPrediction>> {
    let logits = predictions.matrix()?;
    let calibrator = calibrator_of(calibration);
    let mut probabilities = vec![0.0; logits.width()];
    let mut found = Vec::with_capacity(predictions.ids.len());
    for ((row, &id), &label) in logits.iter().zip(&predictions.ids).zip(&predictions.labels) {
        let predicted = argmax(row);
        calibrator.probabilities_into(row, &mut probabilities)?;
        let confidence = probabilities.get(predicted).copied().unwrap_or_default();
        found.push(HeldOutPrediction {
            id,
            label,
            predicted: predicted as u32,
            confidence: f64::from(confidence),
            margin: margin(row, label),
        });
    }
    Ok(found)
}

/// Returns the logit of a class minus the highest other one.
fn margin(logits: &[f32], class: u32) -> f64 {
    let others = logits.iter().zip(0..).filter(|(_, other)| *other != class).map(|(logit, _)| *logit);
    let highest = others.fold(f32::NEG_INFINITY, f32::max);
    f64::from(logits.get(class as usize).copied().unwrap_or_default()) - f64::from(highest)
}

/// Finds at most `count` rows with the smallest margins between their two most likely classes, each with the predicted class and the
/// confidence that the calibrator of a run gives it.
pub(crate) fn least_certain(
    run: &Path,
    logits: Matrix<'_>,
    count: usize,
) -> Result<Vec<(usize, (u32, f64))>> {
    let calibration = read::model_info(run)?.calibration;
    let calibrator = calibrator_of(calibration.as_ref());
    let mut probabilities = vec![0.0; logits.width()];
    let mut found = Vec::new();
    for row in uncertainty_order(logits).into_iter().take(count) {
        let predicted = calibrator.probabilities_into(logits.row(row), &mut probabilities)?;
        let confidence = probabilities.get(predicted).copied().unwrap_or_default();
        found.push((row, (predicted as u32, f64::from(confidence))));
    }
    Ok(found)
}

fn uncertainty_order(logits: Matrix<'_>) -> Vec<usize> {
    let margins: Vec<f64> = logits.iter().map(|row| margin(row, argmax(row) as u32)).collect();
    let mut order: Vec<usize> = (0..margins.len()).collect();
    order.sort_by(|&a, &b| margins[a].total_cmp(&margins[b]));
    order
}

fn calibrator_of(calibration: Option<&FittedCalibrator>) -> &Calibrator {
    calibration.map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator)
}

/// Finds labelled samples of the pool whose content has another label elsewhere in it. Each is an index into the pool; those of the
/// same content follow each other.
pub(crate) fn conflicting_copies(dataset: &Dataset, pool: &Pool) -> Result<Vec<usize>> {
    let mut by_key: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (index, sample) in pool.samples.iter().enumerate().filter(|(_, sample)| sample.label.is_some()) {
        let record = dataset.record(sample.id)?;
        by_key.entry((record.checksum, record.length)).or_default().push(index);
    }
    let mut found = Vec::new();
    for candidates in by_key.into_values().filter(|candidates| candidates.len() > 1) {
        // Equal checksums are no proof of equal content.
        let mut by_content: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for index in candidates {
            let mut bytes = Vec::new();
            dataset.bytes(pool.samples[index].id, &mut bytes)?;
            by_content.entry(bytes).or_default().push(index);
        }
        for same in by_content.into_values() {
            let first = same.first().and_then(|&index| pool.samples[index].label);
            if same.iter().any(|&index| pool.samples[index].label != first) {
                found.extend(same);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_those_of_the_class() {
        assert_eq!(margin(&[1.0, 3.0, 0.5], 1), 2.0);
        assert_eq!(margin(&[1.0, 3.0, 0.5], 0), -2.0);
        let logits = [5.0, 0.0, 1.0, 0.9, 2.0, 0.0];
        assert_eq!(uncertainty_order(Matrix::new(&logits, 3, 2).unwrap()), [1, 2, 0]);
    }

    #[test]
    fn least_fitting_labels_have_the_lowest_margins() {
        let predictions = Predictions {
            step: 0,
            split: EvalSet::OutOfFold,
            model: EvalModel::Ema,
            classes: vec!["a".to_owned(), "b".to_owned()],
            ids: vec![4, 9],
            labels: vec![0, 0],
            logits: vec![2.0, 0.0, -1.0, 3.0],
            groups: Vec::new(),
        };
        let found = of_predictions(&predictions, None).unwrap();
        assert_eq!((found[0].margin, found[1].margin), (2.0, -4.0));
        assert_eq!((found[1].id, found[1].predicted), (9, 1));
        assert!((found[1].confidence - 0.982).abs() < 1e-3);
    }
}
