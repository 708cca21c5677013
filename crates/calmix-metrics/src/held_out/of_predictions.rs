//! Scores the held-out labels of a run.

use calmix_core::rng::{Domain, Seed};

use super::{HeldOut, UnseenLabel};
use crate::calibrator::any_calibrator::Calibrator;
use crate::error::MetricsError;
use crate::fitted_calibrator::FittedCalibrator;
use crate::predictions::Predictions;

/// Scores labels by a calibrator that was not fitted on them.
///
/// # Errors
/// If labels and logits do not match, or the calibrator is for another number of classes.
pub fn of_others(predictions: &Predictions, calibrator: &Calibrator) -> Result<HeldOut, MetricsError> {
    let held_out = HeldOut::of_others(predictions.matrix()?, &predictions.labels, calibrator)?;
    Ok(held_out.select(&kept(&predictions.ids)))
}

/// Scores the labels that fitted a calibrator, each by a fit without it, and those whose class no model of a fold could know.
///
/// # Errors
/// If labels and logits do not match, or there are fewer than two.
pub fn cross_fitted(
    predictions: &Predictions,
    fitted: &FittedCalibrator,
    unseen: &[UnseenLabel],
) -> Result<HeldOut, MetricsError> {
    cross_fitted_unless(predictions, fitted, unseen, &|| false)
}

/// Scores labels as [`cross_fitted`] does, unless `stop` returns true.
///
/// # Errors
/// As [`cross_fitted`], and [`MetricsError::Stopped`].
pub fn cross_fitted_unless(
    predictions: &Predictions,
    fitted: &FittedCalibrator,
    unseen: &[UnseenLabel],
    stop: &dyn Fn() -> bool,
) -> Result<HeldOut, MetricsError> {
    let cross_fit = fitted.cross_fit_unless(predictions, stop)?;
    let mut held_out = HeldOut::cross_fitted(predictions.matrix()?, &predictions.labels, &cross_fit)?;
    let mut ids = predictions.ids.clone();
    for label in unseen {
        held_out.add_unseen(label);
        ids.push(label.id);
    }
    Ok(held_out.select(&kept(&ids)))
}

/// Returns the rows that a model stores, ascending; if there are too many, their ids decide which.
fn kept(ids: &[u64]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..ids.len()).collect();
    if rows.len() > HeldOut::MOST {
        rows.sort_by_cached_key(|&row| (Seed(0).stream(Domain::Conformal, 0, ids[row]).next_u64(), ids[row]));
        rows.truncate(HeldOut::MOST);
        rows.sort_unstable();
    }
    rows
}

#[cfg(test)]
mod tests {
    use crate::calibrator::temperature::Temperature;
    use crate::conformal::PredictionSets;

    use super::*;
    use crate::fitted_calibrator::{FittedCalibrator, FittedOn};
    use crate::held_out::SetRule;
    use crate::predictions::{EvalModel, EvalSet};

    /// Logits of two classes; every fifth label is the less likely class.
    fn made_predictions(n: usize) -> Predictions {
        Predictions {
            step: 1,
            split: EvalSet::Validation,
            model: EvalModel::Ema,
            classes: vec!["a".to_owned(), "b".to_owned()],
            ids: (0..n as u64).collect(),
            labels: (0..n).map(|i| u32::from(i % 5 == 4)).collect(),
            logits: (0..n).flat_map(|i| [1.0 + i as f32 / n as f32, 0.0]).collect(),
        }
    }

    #[test]
    fn the_rules_are_those_of_the_labels_themselves() {
        let predictions = made_predictions(100);
        let map = Calibrator::Temperature { temperature: Temperature::new(2.0).unwrap() };
        let held_out = of_others(&predictions, &map).unwrap();
        assert!(held_out.is_sound() && held_out.len() == 100);
        // Four labels of five are those that the model names, so that sets of 80% need no second class; those of 90% hold
        // it where it is as likely as half of the others' are.
        let probabilities = |row: usize| {
            let mut both = [0.0; 2];
            map.probabilities_into(predictions.matrix().unwrap().row(row), &mut both).unwrap();
            both
        };
        let sizes = |rule, coverage| -> Vec<usize> {
            let sets = held_out.sets(rule, coverage).unwrap();
            (0..100).map(|row| sets.set(&probabilities(row), row as u64).len()).collect()
        };
        for rule in [SetRule::Lac, SetRule::Aps] {
            assert!(sizes(rule, 0.79).iter().all(|&size| size == 1));
            // Rank ⌈101 · 0.99⌉ = 100 is the highest score. A new image has another fraction of APS than a label had.
            let PredictionSets::Marginal(sets) = held_out.sets(rule, 0.99).unwrap() else {
                panic!("{rule:?}")
            };
            let highest = sets.threshold.unwrap();
            let scores = if rule == SetRule::Lac { &held_out.lac } else { &held_out.aps };
            assert!(scores.iter().all(|&score| score <= highest) && scores.contains(&highest), "{rule:?}");
            let doubled = sizes(rule, 0.99).iter().filter(|&&size| size == 2).count();
            assert!(doubled > 55, "{rule:?}: {doubled}");
        }
        // Of LAC: rank ⌈101 · 0.9⌉ = 91 of 100, of which 80 have the score zero, is that of the eleventh other label, row 54.
        let lac = sizes(SetRule::Lac, 0.9);
        assert_eq!(lac.iter().filter(|&&size| size == 2).count(), 55);
        assert!(lac.iter().take(55).all(|&size| size == 2));
        assert_eq!(held_out.right.iter().filter(|&&right| right).count(), 80);
        assert!(held_out.answer_threshold(0.6).unwrap().is_some());
        assert_eq!(held_out.answer_threshold(0.9).unwrap(), None);
        let json = serde_json::to_string(&held_out).unwrap();
        assert_eq!(serde_json::from_str::<HeldOut>(&json).unwrap(), held_out);
    }

    #[test]
    fn of_many_labels_some_are_drawn_by_their_ids() {
        let predictions = made_predictions(3_000);
        let held_out = of_others(&predictions, &Calibrator::IDENTITY).unwrap();
        assert_eq!(held_out.len(), HeldOut::MOST);
        // A share of 0.8 of 1,000 is drawn within five deviations of 0.0126.
        let right = held_out.right.iter().filter(|&&right| right).count();
        assert!((737..863).contains(&right), "{right}");
        assert!(!HeldOut { lac: Vec::new(), ..held_out }.is_sound());
    }

    /// Logits of ten classes, each scaled and shifted on its own, with labels drawn from what the logits were before.
    fn distorted(n: usize, seed: u64, part: u64) -> Predictions {
        const CLASSES: usize = 10;
        let mut law = Seed(seed).stream(Domain::Split, 0, 0);
        let scale: Vec<f64> = (0..CLASSES).map(|_| (0.3 * law.normal()).exp()).collect();
        let bias: Vec<f64> = (0..CLASSES).map(|_| law.normal()).collect();
        let mut stream = Seed(seed).stream(Domain::Split, 1, part);
        let mut logits = Vec::new();
        let mut labels = Vec::new();
        for _ in 0..n {
            let truth: Vec<f64> = (0..CLASSES).map(|_| 2.0 * stream.normal()).collect();
            let weights: Vec<f64> = truth.iter().map(|z| z.exp()).collect();
            let mut left = stream.uniform() * weights.iter().sum::<f64>();
            let label = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            labels.push(label.unwrap_or(CLASSES - 1) as u32);
            logits.extend((0..CLASSES).map(|k| (1.5 * (truth[k] - bias[k]) / scale[k]) as f32));
        }
        Predictions { labels, logits, classes: vec![String::new(); CLASSES], ..made_predictions(n) }
    }

    /// Vector scaling has twenty numbers here and a hundred labels: scored by the calibrator that they fitted, the labels
    /// look more ordinary than new images are, and sets of 90% covered 86.5%.
    #[test]
    fn vector_scaling_keeps_its_coverage() {
        let mut covered = 0.0;
        let mut draws = 0.0;
        for seed in 0..60 {
            let labels = distorted(100, seed, 0);
            let map = FittedCalibrator::fit(&labels, FittedOn::Later).unwrap();
            if !map.calibrator.may_change_labels() {
                continue;
            }
            let sets = cross_fitted(&labels, &map, &[]).unwrap().sets(SetRule::Lac, 0.9).unwrap();
            let new = distorted(500, seed, 1);
            let probabilities = map.calibrator.probabilities(new.matrix().unwrap()).unwrap();
            let held = probabilities.chunks(10).zip(&new.labels).zip(&new.ids);
            let held = held.filter(|((p, label), id)| sets.set(p, **id).contains(label)).count();
            covered += held as f64 / 500.0;
            draws += 1.0;
        }
        assert!(draws > 40.0, "{draws}");
        // The coverage of a draw varies by 0.033, its mean over forty by 0.005.
        assert!(covered / draws > 0.89, "{}", covered / draws);
    }
}
