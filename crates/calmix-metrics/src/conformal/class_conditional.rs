//! Class-conditional conformal prediction: a threshold per class, from the scores of that class alone.
//!
//! Given its class, a sample is exchangeable with the held-out samples of that class, so a set contains the true class with
//! the requested probability for each class, and therefore under any mix of the classes (Vovk: "Conditional validity of
//! inductive conformal predictors", 2012; Mondrian conformal prediction). A class with too few labels has no threshold and
//! is in every set.

use std::collections::BTreeMap;

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::softmax::argmax;

use super::{Conformal, PREDICTION, Score};
use crate::checked;
use crate::error::MetricsError;
use crate::groups::{rows_of_groups, select_groups};

/// A rule for prediction sets with a threshold per class. Every set contains the likeliest class, unless it may be empty.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassConditional {
    /// The rules of the classes that have labels. A map rather than a list, because the classes may come from an untrusted
    /// file, whose largest class would set the length of a list.
    rules: BTreeMap<u32, Conformal>,
    min_labels: usize,
    may_be_empty: bool,
}

impl ClassConditional {
    /// Calibrates on the [`Score::Lac`] scores of the true classes, which are zero if the true class was the likeliest.
    /// [Groups](crate::groups), if there are any, count within each class.
    ///
    /// # Errors
    /// If a score is not finite, `alpha` is not in (0, 1), or only some of the labels have a group.
    pub fn from_scores(
        labels: &[u32],
        scores: &[f64],
        groups: &[u32],
        alpha: f64,
    ) -> Result<Self, MetricsError> {
        if !groups.is_empty() {
            checked::length("groups", labels.len(), groups.len())?;
        }
        let mut by_class: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, &label) in labels.iter().enumerate().take(scores.len()) {
            by_class.entry(label).or_default().push(row);
        }
        // Without labels there is no class whose rule would check `alpha`.
        Conformal::from_scores(Vec::new(), Score::Lac, alpha)?;
        let mut rules = BTreeMap::new();
        for (class, rows) in by_class {
            let scores: Vec<f64> = rows.iter().map(|&row| scores[row]).collect();
            let groups = select_groups(groups, &rows);
            rules.insert(class, Conformal::from_grouped_scores(&scores, &groups, Score::Lac, alpha)?);
        }
        Ok(Self { rules, min_labels: Conformal::min_labels(alpha), may_be_empty: false })
    }

    /// Returns the same rule without the likeliest class in every set, for scores that are not zero if it was the true one.
    #[must_use]
    pub fn may_be_empty(self) -> Self {
        Self { may_be_empty: true, ..self }
    }

    /// Calibrates on scores of labels that are weighted by class, for samples whose classes have other shares: the thresholds of a
    /// class have its weight at infinity, so that the coverage holds on average over the other mix (arXiv 2103.03323). A label in
    /// a group of n has an n-th of its weight.
    ///
    /// # Errors
    /// If a score is not finite, `alpha` is not in (0, 1), or only some of the labels have a group.
    pub fn weighted(
        labels: &[u32],
        scores: &[f64],
        groups: &[u32],
        weights: &[f64],
        alpha: f64,
    ) -> Result<Self, MetricsError> {
        checked::finite("score", scores)?;
        let unweighted = Conformal::from_scores(Vec::new(), Score::Lac, alpha)?;
        checked::length("labels", scores.len(), labels.len())?;
        if !groups.is_empty() {
            checked::length("groups", labels.len(), groups.len())?;
        }
        let groups = rows_of_groups(groups, labels.len());
        let mut weighted: Vec<(f64, f64)> = Vec::with_capacity(scores.len());
        for rows in &groups {
            for &row in rows {
                let weight = weights.get(labels[row] as usize).copied().unwrap_or(0.0);
                weighted.push((scores[row], weight / rows.len() as f64));
            }
        }
        weighted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut rules = BTreeMap::new();
        for (class, weight) in (0..).zip(weights) {
            // Rounded as for groups.
            let needed = (total + weight) * (1.0 - alpha) - 1e-9;
            let mut below = 0.0;
            let at_threshold = weighted.iter().find(|(_, weight)| {
                below += weight;
                below >= needed
            });
            let threshold = at_threshold.map(|&(score, _)| score);
            rules.insert(class, Conformal { threshold, n: groups.len(), ..unweighted });
        }
        Ok(Self { rules, min_labels: Conformal::min_labels(alpha), may_be_empty: false })
    }

    /// Returns the largest score with which a class is in a set; `None` if it is in every set.
    pub fn threshold(&self, class: u32) -> Option<f64> {
        self.rules.get(&class).and_then(|rule| rule.threshold)
    }

    /// Returns the number of further labels that a class needs for a threshold, each of a group of its own; zero if it has one.
    pub fn missing_labels(&self, class: u32) -> usize {
        self.min_labels.saturating_sub(self.rules.get(&class).map_or(0, |rule| rule.n))
    }

    /// Returns the smallest number of labels with which a class has a threshold.
    pub fn min_labels(&self) -> usize {
        self.min_labels
    }

    /// Returns the prediction set of one sample, the likeliest class first; among equals, the lower class first.
    pub fn set<T: Scalar>(&self, probabilities: &[T]) -> Vec<u32> {
        let mut set = Vec::new();
        let classes = Score::Lac.of_classes(probabilities, PREDICTION, 0);
        for (place, (class, score)) in classes.into_iter().enumerate() {
            let threshold = self.threshold(class);
            // The likeliest class is always included, as it had score zero when the thresholds were calibrated. With a single
            // threshold it would be in every non-empty set anyway; with one per class it need not be.
            let is_included = place == 0 && !self.may_be_empty;
            if is_included || threshold.is_none_or(|threshold| score <= threshold) {
                set.push(class);
            }
        }
        set
    }

    /// Returns the largest score with which each of the first classes is in a set; infinity if it is in every set.
    pub fn thresholds(&self, classes: usize) -> Vec<f64> {
        (0..classes).map(|class| self.threshold(class as u32).unwrap_or(f64::INFINITY)).collect()
    }
}

/// A calibrated rule for prediction sets. Every set contains the likeliest class.
#[derive(Debug, Clone, PartialEq)]
pub enum PredictionSets {
    /// One threshold: the coverage is an average over all samples.
    Marginal(Conformal),
    /// A threshold per class: the coverage holds for each class.
    ByClass(ClassConditional),
}

impl PredictionSets {
    /// Returns the prediction set of one sample, the likeliest class first; `sample` as in [`Conformal::set`].
    pub fn set<T: Scalar>(&self, probabilities: &[T], sample: u64) -> Vec<u32> {
        match self {
            Self::Marginal(rule) => rule.set(probabilities, sample),
            Self::ByClass(rule) => rule.set(probabilities),
        }
    }

    /// Returns which classes are in the sets of many samples, numbered from `first`: the same sets as those of
    /// [`set`](Self::set), one entry per probability.
    pub fn members<T: Scalar>(&self, probabilities: MatrixOf<'_, T>, first: u64) -> Vec<bool> {
        let classes = probabilities.width();
        let mut members = vec![false; probabilities.data().len()];
        let rows = probabilities.iter().zip(members.chunks_exact_mut(classes.max(1)));
        match self {
            Self::Marginal(rule) => {
                rows.zip(first..).for_each(|((p, members), sample)| rule.mark(p, sample, members));
            }
            Self::ByClass(rule) => {
                let thresholds = rule.thresholds(classes);
                for (p, members) in rows {
                    for ((member, &p), threshold) in members.iter_mut().zip(p).zip(&thresholds) {
                        *member = 1.0 - p.into() <= *threshold;
                    }
                    if !rule.may_be_empty && classes > 0 {
                        members[argmax(p)] = true;
                    }
                }
            }
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class 0 has nine labels, class 1 eight: one too few for 90%. Class 2 has none.
    fn rule() -> ClassConditional {
        let labels: Vec<u32> = (0..17).map(|row| u32::from(row >= 9)).collect();
        let scores: Vec<f64> = (0..17).map(|row| 0.05 * f64::from(row % 9)).collect();
        ClassConditional::from_scores(&labels, &scores, &[], 0.1).unwrap()
    }

    #[test]
    fn class_with_too_few_labels_is_in_every_set() {
        let rule = rule();
        assert_eq!([0, 1, 2, u32::MAX].map(|class| rule.missing_labels(class)), [0, 1, 9, 9]);
        assert_eq!(rule.min_labels(), 9);
        // The threshold of class 0 is the largest of its scores, 0.4.
        assert_eq!(rule.set(&[0.625, 0.25, 0.125]), [0, 1, 2]);
        assert_eq!(rule.set(&[0.25, 0.625, 0.125]), [1, 2]);
        assert!(rule.set::<f32>(&[]).is_empty());
    }

    /// The set of LAC holds the likeliest class because it is the first below the one threshold; here the threshold of
    /// another class may be the only one that is met.
    #[test]
    fn likeliest_class_is_in_every_set() {
        let labels: Vec<u32> = (0..20).map(|row| row / 10).collect();
        let scores: Vec<f64> = labels.iter().map(|&label| if label == 0 { 0.1 } else { 0.75 }).collect();
        let rule = ClassConditional::from_scores(&labels, &scores, &[], 0.1).unwrap();
        assert_eq!(rule.set(&[0.5, 0.25]), [0, 1]);
        assert_eq!(rule.set(&[0.5, 0.2]), [0]);
        assert_eq!(rule.set(&[0.25, 0.5]), [1]);
    }

    #[test]
    fn sets_of_a_table_are_those_of_its_rows() {
        use calmix_core::rng::{Domain, Seed};
        let mut stream = Seed(3).stream(Domain::Conformal, 9, 0);
        // Few distinct numbers, so that there are ties.
        let numbers: Vec<f64> = (0..300).map(|_| (8.0 * stream.uniform()).floor() / 8.0).collect();
        let table = MatrixOf::new(&numbers, 60, 5).unwrap();
        let aps = Score::RandomisedAps { seed: Seed(1) };
        let marginal =
            |score, threshold| Conformal { score, alpha: 0.5, threshold, never_empty: false, n: 9 };
        let scores: Vec<f64> = (0..17).map(|row| 0.05 * f64::from(row)).collect();
        let by_class = ClassConditional::from_scores(&[0; 17], &scores, &[], 0.5).unwrap();
        for rule in [
            PredictionSets::Marginal(marginal(Score::Lac, Some(0.25))),
            PredictionSets::Marginal(marginal(Score::Lac, Some(0.25)).never_empty()),
            PredictionSets::Marginal(marginal(Score::Lac, None)),
            PredictionSets::Marginal(marginal(aps, Some(0.75))),
            PredictionSets::ByClass(by_class.clone()),
            PredictionSets::ByClass(by_class.may_be_empty()),
        ] {
            let members = rule.members(table, 40);
            for (row, p) in table.iter().enumerate() {
                let mut set = rule.set(p, 40 + row as u64);
                set.sort_unstable();
                let marked = (0..5_u32).filter(|&class| members[5 * row + class as usize]);
                assert_eq!(marked.collect::<Vec<_>>(), set, "{rule:?} {p:?}");
            }
        }
    }

    #[test]
    fn invalid_alpha_and_scores_are_refused() {
        assert!(ClassConditional::from_scores(&[], &[], &[], 1.0).is_err());
        assert!(ClassConditional::from_scores(&[0], &[f64::NAN], &[], 0.1).is_err());
        assert!(ClassConditional::from_scores(&[], &[], &[], 0.1).unwrap().set(&[0.5, 0.5]).len() == 2);
    }
}
