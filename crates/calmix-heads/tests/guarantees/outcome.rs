//! What a head does on vectors that it was not calibrated on.

use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use calmix_head::fit::FittedHead;
use calmix_head::model::HeadModel;
use calmix_heads::vector_classifier::VectorClassifier;
use calmix_metrics::held_out::{self, HeldOut, SetRule};

use super::world::Drawn;

pub(crate) const COVERAGE: f64 = 0.9;
pub(crate) const PRECISION: f64 = 0.9;

/// What a head of one draw does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// The share of new vectors whose set contains the true class.
    pub(crate) new: f64,
    /// The same of the unlabelled vectors that the head was trained on.
    pub(crate) own: f64,
    /// The same of new vectors, by sets with a threshold for each class.
    pub(crate) by_class: f64,
    /// The classes in a set of a new vector.
    pub(crate) size: f64,
    /// The share of right answers among new vectors; `None` if the head abstains from all.
    pub(crate) precision: Option<f64>,
    pub(crate) error: f64,
}

impl Outcome {
    /// Evaluates a head on the unlabelled vectors that it was trained on, and on new ones.
    pub(crate) fn of(classifier: &VectorClassifier, head: &FittedHead, pool: &Drawn, new: &Drawn) -> Self {
        let model = HeadModel::new(classifier.model.projection().clone(), head.trained.ema.clone()).unwrap();
        let logits = model.logits(&new.vectors).unwrap();
        let classes = logits.len() / new.labels.len();
        let right: Vec<bool> = logits
            .chunks(classes)
            .zip(&new.labels)
            .map(|(row, &label)| argmax(row) == label as usize)
            .collect();
        let error = share(right.iter().map(|right| !right));
        let Some(fitted) = head.calibrator.calibrator() else {
            // Without a calibrator there are neither sets nor answers: nothing is guaranteed.
            return Self { new: 1.0, own: 1.0, by_class: 1.0, size: classes as f64, precision: None, error };
        };
        let held_out =
            held_out::score_cross_fitted(&head.predictions, fitted, &head.unseen, &|| false).unwrap();
        let probabilities = |logits: &[f32]| -> Vec<f32> {
            let rows = Matrix::new(logits, logits.len() / classes, classes).unwrap();
            fitted.calibrator.probabilities(rows).unwrap()
        };
        let of_new = probabilities(&logits);
        let of_pool = probabilities(&model.logits(&pool.vectors).unwrap());
        let (new_coverage, size) = coverage(&held_out, SetRule::Lac, &of_new, new);
        let (own, _) = coverage(&held_out, SetRule::Lac, &of_pool, pool);
        let (by_class, _) = coverage(&held_out, SetRule::LacByClass, &of_new, new);
        let threshold = held_out.answer_threshold(PRECISION).unwrap().map(|found| found.threshold);
        let precision = threshold.and_then(|threshold| {
            let scores = logits.chunks(classes).map(|row| fitted.calibrator.answer_score(row).unwrap());
            let answered: Vec<bool> = scores
                .zip(&right)
                .filter(|&(score, _)| score >= threshold)
                .map(|(_, &right)| right)
                .collect();
            (!answered.is_empty()).then(|| share(answered.into_iter()))
        });
        Self { new: new_coverage, own, by_class, size, precision, error }
    }
}

/// The share of vectors whose set contains the true class, and the mean number of classes in a set.
fn coverage(held_out: &HeldOut, rule: SetRule, probabilities: &[f32], drawn: &Drawn) -> (f64, f64) {
    let sets = held_out.sets(rule, COVERAGE).unwrap();
    let rows = drawn.labels.len();
    let classes = probabilities.len() / rows;
    let mut covered = 0.0;
    let mut size = 0.0;
    for (row, (p, label)) in probabilities.chunks(classes).zip(&drawn.labels).enumerate() {
        let set = sets.set(p, row as u64);
        covered += f64::from(u8::from(set.contains(label)));
        size += set.len() as f64;
    }
    (covered / rows as f64, size / rows as f64)
}

fn share(values: impl ExactSizeIterator<Item = bool>) -> f64 {
    let all = values.len() as f64;
    values.filter(|&value| value).count() as f64 / all
}
