//! What a model remembers of its held-out labels, so that sets of classes and abstaining can keep their promises.
//!
//! Four numbers a label, of at most [`HeldOut::MOST`] labels: neither images nor logits travel with a model, and every
//! coverage and every precision can be asked for later.

use calmix_core::calibration::confidence_map::ConfidenceMap;
use calmix_core::calibration::conformal::{Conformal, Score};
use calmix_core::calibration::{AnswerLevel, CalibrationError, TopLabel, answer_level};
use calmix_core::rng::{Domain, Seed};
use serde::{Deserialize, Serialize};

use crate::evaluate::Predictions;

/// What a model said about labels that it was not trained on. The lists have an entry for each label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// The confidence of the class that it named.
    pub confidence: Vec<f32>,
    /// Whether that was the right one.
    pub right: Vec<bool>,
    /// The score of the right class by LAC, 1 − its probability; zero where the model named it.
    pub lac: Vec<f64>,
    /// The score of the right class by randomised APS, the probability of all that are more likely and a part of its own;
    /// zero where the model named it.
    pub aps: Vec<f64>,
}

/// The fractions of randomised APS come from here, in every model.
const APS: Score = Score::RandomisedAps { seed: Seed(0) };

/// How classes are chosen for a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetRule {
    /// The smallest sets on average ([`Score::Lac`]).
    #[default]
    Lac,
    /// Sets that grow where the model doubts ([`Score::RandomisedAps`]).
    Aps,
}

impl HeldOut {
    /// Labels that are kept at most; of more, so many are drawn.
    pub const MOST: usize = 1_000;

    /// The probability with which a promised precision may be missed.
    pub const DELTA: f64 = 0.1;

    /// What a model said, calibrated by a map. Which of many labels are kept follows from their ids.
    ///
    /// # Errors
    /// If labels and logits do not fit each other, or the map is of another number of classes.
    pub fn of(predictions: &Predictions, map: &ConfidenceMap) -> Result<Self, CalibrationError> {
        let matrix = predictions.matrix()?;
        let mut rows: Vec<usize> = (0..predictions.labels.len()).collect();
        if rows.len() > Self::MOST {
            let key = |&row: &usize| {
                let id = predictions.ids.get(row).copied().unwrap_or_default();
                (Seed(0).stream(Domain::Conformal, 0, id).next_u64(), id)
            };
            rows.sort_by_cached_key(key);
            rows.truncate(Self::MOST);
            rows.sort_unstable();
        }
        let mut held_out =
            Self { confidence: Vec::new(), right: Vec::new(), lac: Vec::new(), aps: Vec::new() };
        let mut probabilities = vec![0.0; matrix.width()];
        for row in rows {
            let (logits, label) = (matrix.row(row), predictions.labels[row]);
            let said = map.probabilities_into(logits, &mut probabilities)?;
            // Every set holds the class that the model named. Counted as a score of zero here, that costs no coverage
            // beyond what is promised.
            let of = |score: Score| {
                let score = score.of_label(&probabilities, label, row as u64).unwrap_or(1.0);
                if said as u32 == label { 0.0 } else { score }
            };
            held_out.confidence.push(probabilities.get(said).copied().unwrap_or_default());
            held_out.right.push(said as u32 == label);
            held_out.lac.push(of(Score::Lac));
            held_out.aps.push(of(APS));
        }
        Ok(held_out)
    }

    /// How many labels.
    pub fn len(&self) -> usize {
        self.confidence.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.confidence.is_empty()
    }

    /// Whether the lists fit each other: what stands in a file may be anything.
    pub fn is_sound(&self) -> bool {
        let n = self.len();
        n <= Self::MOST && [self.right.len(), self.lac.len(), self.aps.len()] == [n; 3]
    }

    /// The rule for sets that hold the right class with a probability of at least `coverage`, and always the likeliest one.
    ///
    /// # Errors
    /// If the coverage is not between 0 and 1, or a score is not finite.
    pub fn sets(&self, rule: SetRule, coverage: f64) -> Result<Conformal, CalibrationError> {
        let (scores, score) = match rule {
            SetRule::Lac => (&self.lac, Score::Lac),
            SetRule::Aps => (&self.aps, APS),
        };
        Ok(Conformal::from_scores(scores.clone(), score, 1.0 - coverage)?.never_empty())
    }

    /// From which confidence on at least the share `precision` of the answers is right, except with the probability
    /// [`DELTA`](Self::DELTA); none if the labels do not show that of any.
    ///
    /// # Errors
    /// If the precision is not between 0 and 1, or a confidence is not.
    pub fn answer_level(&self, precision: f64) -> Result<Option<AnswerLevel>, CalibrationError> {
        let confidence = self.confidence.iter().map(|&confidence| f64::from(confidence)).collect();
        answer_level(&TopLabel::new(confidence, self.right.clone())?, precision, Self::DELTA)
    }
}

#[cfg(test)]
mod tests {
    use calmix_core::calibration::temperature::Temperature;

    use super::*;
    use crate::events::{EvalModel, EvalSet};

    /// Logits of two classes; every fifth label is the less likely class.
    fn said(n: usize) -> Predictions {
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
        let predictions = said(100);
        let map = ConfidenceMap::Temperature { temperature: Temperature::new(2.0).unwrap() };
        let held_out = HeldOut::of(&predictions, &map).unwrap();
        assert!(held_out.is_sound() && held_out.len() == 100);
        // Four labels of five are those that the model names, so that sets of 80 % need no second class; those of 90 % hold
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
            let highest = held_out.sets(rule, 0.99).unwrap().threshold.unwrap();
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
        assert!(held_out.answer_level(0.6).unwrap().is_some());
        assert_eq!(held_out.answer_level(0.9).unwrap(), None);
        let json = serde_json::to_string(&held_out).unwrap();
        assert_eq!(serde_json::from_str::<HeldOut>(&json).unwrap(), held_out);
    }

    #[test]
    fn of_many_labels_some_are_drawn_by_their_ids() {
        let predictions = said(3_000);
        let held_out = HeldOut::of(&predictions, &ConfidenceMap::IDENTITY).unwrap();
        assert_eq!(held_out.len(), HeldOut::MOST);
        // A share of 0.8 of 1,000 is drawn within five deviations of 0.0126.
        let right = held_out.right.iter().filter(|&&right| right).count();
        assert!((737..863).contains(&right), "{right}");
        assert!(!HeldOut { lac: Vec::new(), ..held_out }.is_sound());
    }
}
