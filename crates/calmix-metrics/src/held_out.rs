//! The held-out labels that a model stores, from which prediction sets and abstention are computed.
//!
//! A few numbers per label are stored: a model contains neither images nor logits, and every coverage and every precision can
//! still be requested later.
//!
//! Labels that fitted the calibrator are scored by cross-fitting, each by a calibrator fitted without it. Scored by the
//! calibrator that they fitted, they would conform better than new images do: with vector scaling, sets for 90% then
//! cover only 85 to 88%.

mod class_scores;
mod label_logits;
mod of_probabilities;
mod other_mix;
mod scoring;

use std::collections::BTreeSet;

use calmix_core::matrix::{Matrix, Scalar};
use calmix_core::rng::Seed;
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::abstention::{AnswerThreshold, answer_thresholds, log_odds};
use crate::calibrator::Calibrator;
use crate::calibrator::cross_fit::CrossFit;
use crate::calibrator::temperature::Temperature;
use crate::checked;
use crate::conformal::{ClassConditional, Conformal, PredictionSets, Score};
use crate::error::MetricsError;
use crate::groups::{group_count, one_of_each_group, select_groups};

pub use class_scores::ClassScores;
pub use label_logits::LabelLogits;
pub use of_probabilities::probability_log_odds;
pub use other_mix::{AdaptedLabels, adapt_logits, mix_weights};
pub use scoring::{score, score_cross_fitted, score_with_logits, score_with_logits_cross_fitted};

/// The scores of labels that the model was not trained on. The lists have one entry per label; those of a file may be
/// missing or contradict each other ([`is_sound`](Self::is_sound)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldOut {
    /// The true class of each label.
    pub label: Vec<u32>,
    /// The score by which the model abstains ([`Calibrator::answer_score`]).
    pub answer: Vec<f64>,
    /// Whether the predicted class was the true one.
    pub right: Vec<bool>,
    /// The score of the true class by LAC, 1 − its probability; zero if the model predicted it.
    pub lac: Vec<f64>,
    /// The score of the true class by randomised APS, the probability of all likelier classes and a fraction of its own;
    /// zero if the model predicted it.
    pub aps: Vec<f64>,
    /// The [group](crate::groups) of each label; empty if each is a group of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<u32>,
    /// The labels for [`SetRule::LacByClass`], if there are more labels than the lists above store: these may have too few of
    /// some class.
    #[serde(skip_serializing_if = "ClassScores::is_empty")]
    pub by_class: ClassScores,
}

/// A label whose class has no label in another fold. The model that predicted it was trained without it, so it cannot predict
/// the class.
#[derive(Debug, Clone, PartialEq)]
pub struct UnseenLabel {
    /// The id of the sample.
    pub id: u64,
    /// The class.
    pub label: u32,
    /// The group of the sample; unused if each sample is a group of its own.
    pub group: u32,
    /// The logits of all classes; the one of the class itself carries no information.
    pub logits: Vec<f32>,
}

/// Randomised APS with the seed that every model uses.
const APS: Score = Score::RandomisedAps { seed: Seed(0) };

/// The rule by which the classes of a prediction set are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetRule {
    /// The smallest sets on average ([`Score::Lac`]).
    #[default]
    Lac,
    /// Sets that grow where the model is unsure ([`Score::RandomisedAps`]).
    Aps,
    /// LAC with a threshold per class: the coverage holds for each class ([`ClassConditional`]).
    LacByClass,
}

impl HeldOut {
    /// The largest number of labels that a model stores.
    pub const MAX_LABELS: usize = 1_000;

    /// The score of an [`UnseenLabel`], and the highest that a label may have: no class is left out of a set at this
    /// threshold, though sums of probabilities may exceed 1 by rounding.
    pub const MAX_SCORE: f64 = 1.001;

    /// The probability with which a guaranteed precision may be missed.
    pub const DELTA: f64 = 0.1;

    /// Scores labels by a calibrator that was not fitted on them.
    ///
    /// # Errors
    /// If labels and logits do not match, a logit is not finite, or the calibrator is for another number of classes.
    pub fn score(logits: Matrix<'_>, labels: &[u32], calibrator: &Calibrator) -> Result<Self, MetricsError> {
        checked::logits(logits, labels)?;
        let calibrated = calibrator.apply(logits)?;
        Ok(Self::from_logits(logits, &calibrated, labels, calibrator.may_change_labels()))
    }

    /// Scores the labels that fitted a calibrator, each by the one that was fitted without its fold.
    ///
    /// The calibrator that is used for predictions was fitted on all labels, those of the folds on four fifths of them. The
    /// coverage is therefore not proven, as it is for [`score`](Self::score), but shown by a simulation
    /// (docs/concepts/guarantees.md).
    ///
    /// # Errors
    /// If labels, logits and the cross-fit do not match, or a logit is not finite.
    pub fn score_cross_fitted(
        logits: Matrix<'_>,
        labels: &[u32],
        cross_fit: &CrossFit,
    ) -> Result<Self, MetricsError> {
        checked::logits(logits, labels)?;
        checked::length("cross-fitted logits", logits.data().len(), cross_fit.logits.len())?;
        let changes_labels = cross_fit.folds.iter().any(Calibrator::may_change_labels);
        Ok(Self::from_logits(logits, &cross_fit.logits, labels, changes_labels))
    }

    /// Scores checked rows; `calibrated` are the logits after the calibrator.
    fn from_logits(logits: Matrix<'_>, calibrated: &[f32], labels: &[u32], changes_labels: bool) -> Self {
        let mut held_out = Self::default();
        let mut probabilities = vec![0.0; logits.width()];
        let calibrated = calibrated.chunks_exact(logits.width().max(1));
        for (row, ((raw, calibrated), &label)) in logits.iter().zip(calibrated).zip(labels).enumerate() {
            Temperature::IDENTITY.probabilities_into(calibrated, &mut probabilities);
            let decisive = if changes_labels { calibrated } else { raw };
            let right = argmax(decisive) == label as usize;
            held_out.add(label, right, log_odds(decisive), &probabilities, row as u64);
        }
        held_out
    }

    /// Adds a label with its score by which a model abstains, and the probabilities of its row.
    fn add<T: Scalar>(&mut self, label: u32, right: bool, answer: f64, probabilities: &[T], row: u64) {
        // Every set contains the predicted class. Scoring it zero here makes that part of the rule which is
        // calibrated, so it costs no coverage beyond what was requested.
        let score_of = |score: Score| {
            let of_label = score.of_label(probabilities, label, row).unwrap_or(1.0);
            if right { 0.0 } else { of_label }
        };
        self.label.push(label);
        self.answer.push(answer);
        self.right.push(right);
        self.lac.push(score_of(Score::Lac));
        self.aps.push(score_of(APS));
    }

    /// Adds a label of an unseen class. No prediction set could contain it, and its prediction is wrong at the confidence of the
    /// predicted class.
    fn add_unseen(&mut self, unseen: &UnseenLabel, has_groups: bool) {
        if has_groups {
            self.group.push(unseen.group);
        }
        self.label.push(unseen.label);
        self.answer.push(log_odds(&unseen.logits));
        self.right.push(false);
        self.lac.push(Self::MAX_SCORE);
        self.aps.push(Self::MAX_SCORE);
    }

    /// Returns the classes whose only label was held out, ascending.
    pub fn unseen_classes(&self) -> Vec<u32> {
        let scored = self.label.iter().zip(&self.lac);
        let classes: BTreeSet<u32> =
            scored.filter(|&(_, &score)| score == Self::MAX_SCORE).map(|(&label, _)| label).collect();
        classes.into_iter().collect()
    }

    /// Returns the entries of these rows, in this order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let rows: Vec<usize> = rows.iter().copied().filter(|&row| row < self.len()).collect();
        Self {
            label: rows.iter().map(|&row| self.label[row]).collect(),
            answer: rows.iter().map(|&row| self.answer[row]).collect(),
            right: rows.iter().map(|&row| self.right[row]).collect(),
            lac: rows.iter().map(|&row| self.lac[row]).collect(),
            aps: rows.iter().map(|&row| self.aps[row]).collect(),
            group: select_groups(&self.group, &rows),
            by_class: ClassScores::default(),
        }
    }

    /// Returns the number of groups; that of the labels if each is a group of its own.
    pub fn group_count(&self) -> usize {
        group_count(&self.group, self.len())
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.label.len()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.label.is_empty()
    }

    /// Returns whether the lists have the same length of at most [`MAX_LABELS`](Self::MAX_LABELS), which a file does not
    /// guarantee.
    pub fn is_sound(&self) -> bool {
        let n = self.len();
        let is_grouped = self.group.is_empty() || self.group.len() == n;
        let lengths = [self.answer.len(), self.right.len(), self.lac.len(), self.aps.len()];
        n <= Self::MAX_LABELS && lengths == [n; 4] && is_grouped && self.by_class.is_sound()
    }

    /// Returns the rule for prediction sets that contain the true class with a probability of at least `coverage`, on average
    /// or for each class. Every set contains the likeliest class.
    ///
    /// # Errors
    /// If the coverage is not between 0 and 1, or a score is not finite.
    pub fn sets(&self, rule: SetRule, coverage: f64) -> Result<PredictionSets, MetricsError> {
        let alpha = 1.0 - coverage;
        let marginal = |scores: &[f64], score: Score| -> Result<PredictionSets, MetricsError> {
            let rule = Conformal::from_grouped_scores(scores, &self.group, score, alpha)?;
            Ok(PredictionSets::Marginal(rule.never_empty()))
        };
        match rule {
            SetRule::Lac => marginal(&self.lac, Score::Lac),
            SetRule::Aps => marginal(&self.aps, APS),
            SetRule::LacByClass => {
                let [label, group] = if self.by_class.is_empty() {
                    [&self.label, &self.group]
                } else {
                    [&self.by_class.label, &self.by_class.group]
                };
                let scores = if self.by_class.is_empty() { &self.lac } else { &self.by_class.lac };
                Ok(PredictionSets::ByClass(ClassConditional::from_scores(label, scores, group, alpha)?))
            }
        }
    }

    /// Finds the score threshold at or above which at least the share `precision` of the answers is right, except with
    /// probability [`DELTA`](Self::DELTA); `None` if the labels do not show it for any threshold. One label of each group is
    /// tested: those of one group are not independent of each other.
    ///
    /// # Errors
    /// If the precision is not between 0 and 1, or a score is not finite.
    pub fn answer_threshold(&self, precision: f64) -> Result<Option<AnswerThreshold>, MetricsError> {
        let found = self.answer_thresholds(&[precision], Self::DELTA)?;
        Ok(found.into_iter().next().flatten())
    }

    /// Finds a score threshold for each precision, all of which hold except with probability `delta`
    /// ([`answer_thresholds`]).
    ///
    /// # Errors
    /// If a precision or `delta` is not between 0 and 1, or a score is not finite.
    pub fn answer_thresholds(
        &self,
        precisions: &[f64],
        delta: f64,
    ) -> Result<Vec<Option<AnswerThreshold>>, MetricsError> {
        let rows = one_of_each_group(&self.group, self.len(), Seed(0));
        let answers: Vec<f64> = rows.iter().filter_map(|&row| self.answer.get(row).copied()).collect();
        let right: Vec<bool> = rows.iter().filter_map(|&row| self.right.get(row).copied()).collect();
        answer_thresholds(&answers, &right, precisions, delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrator::CalibratorKind;
    use crate::predictions::LabelledLogits;
    use calmix_core::rng::Domain;

    /// Each label has the score that the calibrator of its fold gives it, not that of the calibrator of all labels.
    #[test]
    fn labels_are_scored_out_of_fold() {
        let logits: Vec<f32> = (0..40).flat_map(|i| [2.0 + 0.05 * i as f32, 0.0]).collect();
        let labels: Vec<u32> = (0..40).map(|i| u32::from(i % 4 == 0)).collect();
        let matrix = Matrix::new(&logits, 40, 2).unwrap();
        let fit = |rows: LabelledLogits<'_>| {
            Calibrator::fit(CalibratorKind::Vector, rows.logits, rows.labels, &|| false)
        };
        let rows = LabelledLogits::ungrouped(matrix, &labels);
        let cross_fit = CrossFit::with_five_folds(fit, rows).unwrap();
        let held_out = HeldOut::score_cross_fitted(matrix, &labels, &cross_fit).unwrap();
        let mut p = [0.0; 2];
        for row in 0..40 {
            let of_fold = &cross_fit.folds[cross_fit.fold_of[row] as usize];
            let predicted = of_fold.probabilities_into(matrix.row(row), &mut p).unwrap();
            let label_score = 1.0 - f64::from(p[labels[row] as usize]);
            let expected = if predicted == labels[row] as usize { 0.0 } else { label_score };
            // The logits between are f32.
            assert!((held_out.lac[row] - expected).abs() < 1e-6, "{row}");
        }
        let all = fit(rows).unwrap();
        assert_ne!(HeldOut::score(matrix, &labels, &all).unwrap().lac, held_out.lac);
        assert!(HeldOut::score_cross_fitted(matrix.range(0..3), &labels[..3], &cross_fit).is_err());
    }

    /// Right in 89.9% of all cases at every confidence: a precision of 90% does not exist, and may be found in a tenth of the
    /// draws. Of 200 draws, 33 are three deviations more.
    #[test]
    fn isotonic_calibrator_invents_no_precision() {
        let n = 1_000;
        let mut found = 0;
        for draw in 0..200 {
            let mut stream = Seed(4).stream(Domain::Bootstrap, 0, draw);
            let logits: Vec<f32> = (0..n).flat_map(|_| [3.0 * stream.uniform() as f32, 0.0]).collect();
            let labels: Vec<u32> = (0..n).map(|_| u32::from(stream.uniform() >= 0.899)).collect();
            let matrix = Matrix::new(&logits, n, 2).unwrap();
            let fit = |rows: LabelledLogits<'_>| {
                Calibrator::fit(CalibratorKind::Isotonic, rows.logits, rows.labels, &|| false)
            };
            let cross_fit =
                CrossFit::with_five_folds(fit, LabelledLogits::ungrouped(matrix, &labels)).unwrap();
            let held_out = HeldOut::score_cross_fitted(matrix, &labels, &cross_fit).unwrap();
            found += u32::from(held_out.answer_threshold(0.9).unwrap().is_some());
        }
        assert!(found <= 33, "{found} of 200");
    }
}
