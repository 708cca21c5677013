//! Scores the held-out labels of a run.

use super::class_scores::{ClassScores, kept_rows};
use super::{HeldOut, LabelLogits, UnseenLabel};
use crate::calibrator::Calibrator;
use crate::error::MetricsError;
use crate::fitted_calibrator::FittedCalibrator;
use crate::predictions::{LabelledLogits, Predictions};

/// Scores labels by a calibrator that was not fitted on them.
///
/// # Errors
/// If labels and logits do not match, or the calibrator is for another number of classes.
pub fn score(predictions: &Predictions, calibrator: &Calibrator) -> Result<HeldOut, MetricsError> {
    Ok(score_with_logits(predictions, calibrator)?.0)
}

/// Scores labels as [`score`] does; also returns their calibrated logits.
///
/// # Errors
/// As [`score`].
pub fn score_with_logits(
    predictions: &Predictions,
    calibrator: &Calibrator,
) -> Result<(HeldOut, LabelLogits), MetricsError> {
    let LabelledLogits { logits, labels, groups } = predictions.labelled()?;
    let mut held_out = HeldOut::score(logits, labels, calibrator)?;
    held_out.group = groups.to_vec();
    let label_logits = LabelLogits::new(logits.width(), &calibrator.apply(logits)?, labels, groups);
    Ok((stored(&held_out, &predictions.ids), label_logits.stored(&predictions.ids)))
}

/// Scores the labels that fitted a calibrator, each by a fit without it, and the labels of classes that the head of their fold
/// was not trained on.
///
/// # Errors
/// If labels and logits do not match, there are fewer than two, or `stop` returns true.
pub fn score_cross_fitted(
    predictions: &Predictions,
    fitted: &FittedCalibrator,
    unseen: &[UnseenLabel],
    stop: &dyn Fn() -> bool,
) -> Result<HeldOut, MetricsError> {
    Ok(score_with_logits_cross_fitted(predictions, fitted, unseen, stop)?.0)
}

/// Scores labels as [`score_cross_fitted`] does; also returns their logits, each calibrated by a fit without it.
///
/// # Errors
/// As [`score_cross_fitted`].
pub fn score_with_logits_cross_fitted(
    predictions: &Predictions,
    fitted: &FittedCalibrator,
    unseen: &[UnseenLabel],
    stop: &dyn Fn() -> bool,
) -> Result<(HeldOut, LabelLogits), MetricsError> {
    let cross_fit = fitted.cross_fit(predictions, stop)?;
    let LabelledLogits { logits, labels, groups } = predictions.labelled()?;
    let mut held_out = HeldOut::score_cross_fitted(logits, labels, &cross_fit)?;
    held_out.group = groups.to_vec();
    let mut label_logits = LabelLogits::new(logits.width(), &cross_fit.logits, labels, groups);
    let mut ids = predictions.ids.clone();
    for label in unseen {
        held_out.add_unseen(label, !groups.is_empty());
        label_logits.add_unseen(label, !groups.is_empty());
        ids.push(label.id);
    }
    Ok((stored(&held_out, &ids), label_logits.stored(&ids)))
}

/// Selects the labels that a model stores: all of them, or a draw of them with enough of each class beside it.
fn stored(held_out: &HeldOut, ids: &[u64]) -> HeldOut {
    let rows = kept_rows(ids, &held_out.group, HeldOut::MAX_LABELS);
    let mut by_class = ClassScores::default();
    if held_out.len() > HeldOut::MAX_LABELS {
        by_class = ClassScores::draw(&held_out.label, &held_out.lac, &held_out.group, ids);
    }
    HeldOut { by_class, ..held_out.select(&rows) }
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

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
            groups: Vec::new(),
        }
    }

    #[test]
    fn rules_follow_the_labels() {
        let predictions = made_predictions(100);
        let calibrator = Calibrator::Temperature { temperature: Temperature::new(2.0).unwrap() };
        let held_out = score(&predictions, &calibrator).unwrap();
        assert!(held_out.is_sound() && held_out.len() == 100);
        // Four labels of five are those that the model names, so that sets of 80% need no second class; those of 90% hold
        // it where it is as likely as half of the others' are.
        let probabilities = |row: usize| {
            let mut both = [0.0; 2];
            calibrator.probabilities_into(predictions.matrix().unwrap().row(row), &mut both).unwrap();
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
    fn large_sets_of_labels_are_subsampled() {
        let predictions = made_predictions(3_000);
        let held_out = score(&predictions, &Calibrator::IDENTITY).unwrap();
        assert_eq!(held_out.len(), HeldOut::MAX_LABELS);
        // A share of 0.8 of 1,000 is drawn within five deviations of 0.0126.
        let right = held_out.right.iter().filter(|&&right| right).count();
        assert!((737..863).contains(&right), "{right}");
        assert!(!HeldOut { lac: Vec::new(), ..held_out }.is_sound());
    }

    /// Of 100 classes with 25 labels each, a draw of 1,000 labels leaves some with fewer than the nine that 90% need.
    #[test]
    fn every_class_keeps_enough_labels() {
        let classes = 100;
        let predictions = Predictions {
            classes: (0..classes).map(|class| class.to_string()).collect(),
            labels: (0..2_500).map(|row| row % classes).collect(),
            logits: (0..2_500 * classes).map(|n| (n % 7) as f32).collect(),
            ..made_predictions(2_500)
        };
        let held_out = score(&predictions, &Calibrator::IDENTITY).unwrap();
        assert!(held_out.len() == HeldOut::MAX_LABELS && held_out.is_sound());
        for coverage in [0.9, 0.95] {
            let PredictionSets::ByClass(rule) = held_out.sets(SetRule::LacByClass, coverage).unwrap() else {
                panic!("a rule for all classes")
            };
            assert!((0..classes).all(|class| rule.missing_labels(class) == 0), "{coverage}");
        }
        let drawn = HeldOut { by_class: ClassScores::default(), ..held_out.clone() };
        let PredictionSets::ByClass(rule) = drawn.sets(SetRule::LacByClass, 0.9).unwrap() else {
            panic!("a rule for all classes")
        };
        assert!((0..classes).any(|class| rule.missing_labels(class) > 0));
        let json = serde_json::to_string(&held_out).unwrap();
        assert_eq!(serde_json::from_str::<HeldOut>(&json).unwrap(), held_out);
    }

    /// Ten labels, each of them ten times: they are ten observations, not a hundred.
    #[test]
    fn copies_do_not_add_evidence() {
        let one = made_predictions(10);
        let repeat = |row: usize| row % 10;
        let many = Predictions {
            labels: (0..100).map(|row| one.labels[repeat(row)]).collect(),
            logits: (0..100).flat_map(|row| one.logits[2 * repeat(row)..][..2].to_vec()).collect(),
            groups: (0..100).map(|row| repeat(row) as u32).collect(),
            ..made_predictions(100)
        };
        let of_one = score(&one, &Calibrator::IDENTITY).unwrap();
        let of_many = score(&many, &Calibrator::IDENTITY).unwrap();
        assert_eq!((of_many.len(), of_many.group_count()), (100, 10));
        for coverage in [0.5, 0.7, 0.9, 0.95] {
            let [PredictionSets::Marginal(alone), PredictionSets::Marginal(copied)] =
                [&of_one, &of_many].map(|held_out| held_out.sets(SetRule::Lac, coverage).unwrap())
            else {
                panic!("a rule per class")
            };
            assert_eq!((copied.threshold, copied.n), (alone.threshold, 10), "{coverage}");
        }
        // All hundred are right, but 22 observations are needed for a precision of 90%.
        let right = HeldOut { right: vec![true; 100], ..of_many.clone() };
        assert_eq!(right.answer_threshold(0.9).unwrap(), None);
        assert!(HeldOut { group: Vec::new(), ..right }.answer_threshold(0.9).unwrap().is_some());
        assert!(!HeldOut { group: vec![0; 99], ..of_many }.is_sound());
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
            let fitted = FittedCalibrator::fit(&labels, FittedOn::Later, &|| false).unwrap();
            if !fitted.calibrator.may_change_labels() {
                continue;
            }
            let sets = score_cross_fitted(&labels, &fitted, &[], &|| false)
                .unwrap()
                .sets(SetRule::Lac, 0.9)
                .unwrap();
            let new = distorted(500, seed, 1);
            let probabilities = fitted.calibrator.probabilities(new.matrix().unwrap()).unwrap();
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
