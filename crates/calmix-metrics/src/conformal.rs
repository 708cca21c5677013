//! Split conformal prediction: prediction sets that contain the true class with a guaranteed probability.
//!
//! Calibrated on n samples that are exchangeable with new ones (and were not trained on), a set contains
//! the true class with probability at least 1 − α, whatever the model. The guarantee is over calibration sets
//! and new samples together; it is not per sample, and per class only with a threshold per class ([`ClassConditional`]).
//!
//! ```
//! use calmix_core::matrix::Matrix;
//! use calmix_metrics::conformal::{Conformal, Score};
//!
//! let calibration = [0.75, 0.25].repeat(9);
//! let labels = [0, 0, 0, 0, 1, 0, 0, 0, 0];
//! let rule = Conformal::fit(Matrix::new(&calibration, 9, 2)?, &labels, Score::Lac, 0.2)?;
//! assert_eq!(rule.set(&[0.875, 0.125], 0), [0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod class_conditional;

use std::cmp::Ordering;

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::rng::{Domain, Seed};
use calmix_core::softmax::argmax;
use serde::{Deserialize, Serialize};

use crate::checked;
use crate::error::MetricsError;
use crate::groups::rows_of_groups;

pub use class_conditional::{ClassConditional, PredictionSets};

/// The nonconformity score of a class for a sample; classes with a high score are left out of its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Score {
    /// 1 − p of the class: the smallest sets on average, which may be empty if the model is unsure of every class.
    ///
    /// Sadinle, Lei, Wasserman: "Least ambiguous set-valued classifiers with bounded error levels", 2019
    /// (also called THR).
    Lac,
    /// The probability of the class and of all likelier classes: sets that grow where the model is unsure.
    ///
    /// Romano, Sesia, Candès: "Classification with valid and adaptive coverage", `NeurIPS` 2020, without
    /// their randomisation: never below 1 − α, often above.
    Aps,
    /// APS with a uniform random fraction of the class's own probability: the coverage closest to 1 − α.
    RandomisedAps {
        /// The seed of the fractions, one per sample.
        seed: Seed,
    },
}

/// A calibrated rule for prediction sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Conformal {
    /// The nonconformity score.
    pub score: Score,
    /// α: the allowed probability of missing the true class.
    pub alpha: f64,
    /// The largest score of a class in the set; `None` if n is too small for α, so that every set contains all classes.
    pub threshold: Option<f64>,
    /// Whether a set that would be empty contains the most likely class instead.
    pub never_empty: bool,
    /// The number of samples it was calibrated on, or of their groups.
    pub n: usize,
}

// Calibration and prediction draw at different times of the domain, so that a new sample never has the same
// fraction as a calibration row.
const CALIBRATION: u64 = 0;
const PREDICTION: u64 = 1;

impl Conformal {
    /// Calibrates on rows of probabilities: the threshold is the ⌈(n + 1)(1 − α)⌉-th smallest score.
    ///
    /// Zero rows are allowed: like any n < 1/α − 1, they give sets of all classes. The probabilities need not
    /// sum to one, so any calibrator may have been applied before.
    ///
    /// # Errors
    /// If labels and rows do not fit each other, a probability is not in [0, 1], or α is not in (0, 1).
    pub fn fit<T: Scalar>(
        probabilities: MatrixOf<'_, T>,
        labels: &[u32],
        score: Score,
        alpha: f64,
    ) -> Result<Self, MetricsError> {
        Self::from_scores(score.of_labels(probabilities, labels)?, score, alpha)
    }

    /// Calibrates on the scores of the true classes, which a model stores instead of the samples.
    ///
    /// # Errors
    /// If a score is not finite, or α is not in (0, 1).
    pub fn from_scores(mut scores: Vec<f64>, score: Score, alpha: f64) -> Result<Self, MetricsError> {
        checked::finite("score", &scores)?;
        checked::probability("level alpha", alpha)?;
        scores.sort_by(f64::total_cmp);
        let n = scores.len();
        Ok(Self { score, alpha, threshold: scores.get(rank(n, alpha) - 1).copied(), never_empty: false, n })
    }

    /// Calibrates on the scores of the true classes of samples in [groups](crate::groups): with G groups, a score of a group of
    /// n weighs 1/((G + 1)n), and 1/(G + 1) lies at infinity (arXiv 2306.06342). The set of one sample of a new group then
    /// contains the true class with probability at least 1 − α.
    pub fn from_grouped_scores(
        scores: &[f64],
        groups: &[u32],
        score: Score,
        alpha: f64,
    ) -> Result<Self, MetricsError> {
        let ungrouped = Self::from_scores(scores.to_vec(), score, alpha)?;
        if groups.is_empty() {
            return Ok(ungrouped);
        }
        checked::length("groups", scores.len(), groups.len())?;
        let groups = rows_of_groups(groups, scores.len());
        // In units of 1/(G + 1).
        let mut weighted: Vec<(f64, f64)> = Vec::with_capacity(scores.len());
        for rows in &groups {
            weighted.extend(rows.iter().map(|&row| (scores[row], 1.0 / rows.len() as f64)));
        }
        weighted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        // Rounded as in `rank`, which it is equal to if every group has one sample.
        let needed = (groups.len() + 1) as f64 * (1.0 - alpha) - 1e-9;
        let mut below = 0.0;
        let at_threshold = weighted.iter().find(|(_, weight)| {
            below += weight;
            below >= needed
        });
        Ok(Self { threshold: at_threshold.map(|&(score, _)| score), n: groups.len(), ..ungrouped })
    }

    /// Returns the smallest number of calibration samples that gives a threshold: ⌈1/α⌉ − 1, nine for a coverage of 90%.
    pub fn min_labels(alpha: f64) -> usize {
        // Rounded as in `rank`.
        (((1.0 - 1e-9) / alpha).ceil() as usize).saturating_sub(1)
    }

    /// Returns the same rule, with the most likely class in a set that would be empty.
    ///
    /// Coverage can only rise. Without it an empty set is possible with every score; it means that no class conforms as
    /// well as the true classes of 1 − α of the calibration samples did.
    #[must_use]
    pub fn never_empty(self) -> Self {
        Self { never_empty: true, ..self }
    }

    /// Returns the prediction set of one sample, the most likely class first; among equals, the lower class first.
    ///
    /// `sample` is the sample's number: randomised sets are a function of it and the seed, not of the order
    /// of the calls.
    pub fn set<T: Scalar>(&self, probabilities: &[T], sample: u64) -> Vec<u32> {
        let mut set: Vec<u32> = self
            .score
            .of_classes(probabilities, PREDICTION, sample)
            .into_iter()
            .filter(|&(_, score)| self.threshold.is_none_or(|t| score <= t))
            .map(|(class, _)| class)
            .collect();
        if set.is_empty() && self.never_empty && !probabilities.is_empty() {
            set.push(argmax(probabilities) as u32);
        }
        set
    }

    /// Marks the classes of the [`set`](Self::set) of one sample among `members`, which has an entry per class.
    fn mark<T: Scalar>(&self, probabilities: &[T], sample: u64, members: &mut [bool]) {
        if self.score != Score::Lac {
            members.fill(false);
            self.set(probabilities, sample).iter().for_each(|&class| members[class as usize] = true);
            return;
        }
        // The sets of LAC need no order of the classes, which takes most of the time of a set.
        let threshold = self.threshold.unwrap_or(f64::INFINITY);
        for (member, &p) in members.iter_mut().zip(probabilities) {
            *member = 1.0 - p.into() <= threshold;
        }
        if self.never_empty && !probabilities.is_empty() && !members.iter().any(|&member| member) {
            members[argmax(probabilities)] = true;
        }
    }
}

/// Computes ⌈(n + 1)(1 − α)⌉ as n + 1 − ⌊(n + 1)α⌋.
///
/// A product within 1e-9 below a whole number counts as that number: 0.29 · 100 is 28.999999999999996.
fn rank(n: usize, alpha: f64) -> usize {
    let below = (alpha * (n + 1) as f64 + 1e-9).floor() as usize;
    (n + 1 - below.min(n)).max(1)
}

impl Score {
    /// Computes the score of a sample's true class, for [`Conformal::from_scores`]; `None` if the class does not exist.
    pub fn of_label<T: Scalar>(self, probabilities: &[T], label: u32, sample: u64) -> Option<f64> {
        let label_p: f64 = (*probabilities.get(label as usize)?).into();
        if self == Self::Lac {
            return Some(1.0 - label_p);
        }
        // The classes before the label are summed in the order of `of_classes`, so that both sums have the same bits.
        let classes = probabilities.iter().map(|&p| p.into()).enumerate();
        let mut before: Vec<f64> = classes
            .filter(|&(class, p): &(usize, f64)| match p.total_cmp(&label_p) {
                Ordering::Greater => true,
                Ordering::Equal => class < label as usize,
                Ordering::Less => false,
            })
            .map(|(_, p)| p)
            .collect();
        before.sort_by(|a, b| b.total_cmp(a));
        let before: f64 = before.into_iter().fold(0.0, |sum, p| sum + p);
        Some(before + self.fraction(CALIBRATION, sample) * label_p)
    }

    /// Computes the score of each row's true class, for [`Conformal::from_scores`].
    ///
    /// # Errors
    /// If labels and rows do not fit each other, or a probability is not in [0, 1].
    pub fn of_labels<T: Scalar>(
        self,
        probabilities: MatrixOf<'_, T>,
        labels: &[u32],
    ) -> Result<Vec<f64>, MetricsError> {
        checked::probabilities(probabilities, labels)?;
        let rows = probabilities.iter().zip(labels).enumerate();
        Ok(rows.filter_map(|(row, (p, &label))| self.of_label(p, label, row as u64)).collect())
    }

    /// Returns the fraction of a class's own probability in its score.
    fn fraction(self, time: u64, sample: u64) -> f64 {
        match self {
            Self::RandomisedAps { seed } => seed.stream(Domain::Conformal, time, sample).uniform(),
            Self::Lac | Self::Aps => 1.0,
        }
    }

    /// Returns every class with its score, the most likely first.
    fn of_classes<T: Scalar>(self, probabilities: &[T], time: u64, sample: u64) -> Vec<(u32, f64)> {
        let fraction = self.fraction(time, sample);
        let classes = probabilities.iter().enumerate();
        let mut scored: Vec<(u32, f64)> = classes.map(|(class, &p)| (class as u32, p.into())).collect();
        scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut before = 0.0;
        for (_, score) in &mut scored {
            let p = *score;
            *score = match self {
                Self::Lac => 1.0 - p,
                Self::Aps | Self::RandomisedAps { .. } => before + fraction * p,
            };
            before += p;
        }
        scored
    }
}

#[cfg(test)]
mod tests;
