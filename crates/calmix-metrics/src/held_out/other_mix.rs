//! Guarantees for another mix of classes, from held-out labels that are weighted by class.
//!
//! If only the mix of classes differs, a held-out label of class y counts for w(y) labels of the new mix, w being the quotient of the
//! shares (Podkopaev and Ramdas, arXiv 2103.03323). Sets are weighted, precision is tested on labels thinned to the mix.

use calmix_core::rng::{Domain, Seed};
use calmix_core::softmax::argmax;

use super::{HeldOut, LabelLogits, SetRule};
use crate::abstention::{AnswerThreshold, answer_threshold, log_odds};
use crate::calibrator::temperature::Temperature;
use crate::checked;
use crate::conformal::{ClassConditional, PredictionSets};
use crate::error::MetricsError;
use crate::groups::one_of_each_group;

/// The smallest weight of a class: labels of a class that is said to be missing still count a little.
const MIN_WEIGHT: f64 = 1e-3;
/// The draws that thin labels are at this time of their domain.
const THINNING: u64 = 2;

/// Returns the weights of the classes for a mix with other shares.
pub fn mix_weights(shares: &[f64], source: &[f64]) -> Vec<f64> {
    shares.iter().zip(source).map(|(share, source)| (share / source).max(MIN_WEIGHT)).collect()
}

/// Adds the logarithms of the weights to calibrated logits: their softmax is the probability under the other mix.
pub fn adapt_logits(logits: &mut [f32], weights: &[f64]) {
    for (logit, &weight) in logits.iter_mut().zip(weights) {
        *logit = (f64::from(*logit) + libm::log(weight)) as f32;
    }
}

/// Held-out labels as another mix of classes sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedLabels {
    weights: Vec<f64>,
    label: Vec<u32>,
    group: Vec<u32>,
    lac: Vec<f64>,
    answer: Vec<f64>,
    right: Vec<bool>,
}

impl AdaptedLabels {
    /// Scores held-out labels by their probabilities under another mix; `weights` has one weight per class.
    ///
    /// # Errors
    /// If there is not one positive weight per class.
    pub fn new(labels: &LabelLogits, weights: &[f64]) -> Result<Self, MetricsError> {
        checked::length("weights of classes", labels.classes, weights.len())?;
        checked::values("the weight of class", weights, "positive", |weight| {
            weight > 0.0 && weight.is_finite()
        })?;
        let mut adapted = Self {
            weights: weights.to_vec(),
            label: labels.labels.clone(),
            group: labels.groups.clone(),
            lac: Vec::with_capacity(labels.len()),
            answer: Vec::with_capacity(labels.len()),
            right: Vec::with_capacity(labels.len()),
        };
        let mut probabilities = vec![0.0; labels.classes];
        for (row, &label) in labels.labels.iter().enumerate() {
            let mut logits = labels.row(row).to_vec();
            let is_unseen = logits[label as usize] == LabelLogits::UNSEEN;
            adapt_logits(&mut logits, weights);
            Temperature::IDENTITY.probabilities_into(&logits, &mut probabilities);
            let is_right = argmax(&logits) == label as usize;
            let score = 1.0 - f64::from(probabilities[label as usize]);
            adapted.lac.push(match (is_right, is_unseen) {
                (_, true) => HeldOut::MAX_SCORE,
                (true, _) => 0.0,
                (false, _) => score,
            });
            adapted.answer.push(log_odds(&logits));
            adapted.right.push(is_right && !is_unseen);
        }
        Ok(adapted)
    }

    /// Returns the rule for prediction sets under the mix: weighted, or for each class, whose coverage holds under any mix.
    ///
    /// # Errors
    /// If the coverage is not between 0 and 1, or the rule is APS.
    pub fn sets(&self, rule: SetRule, coverage: f64) -> Result<PredictionSets, MetricsError> {
        let alpha = 1.0 - coverage;
        let rule = match rule {
            SetRule::Lac => {
                ClassConditional::weighted(&self.label, &self.lac, &self.group, &self.weights, alpha)?
            }
            SetRule::LacByClass => ClassConditional::from_scores(&self.label, &self.lac, &self.group, alpha)?,
            SetRule::Aps => {
                return Err(MetricsError::Parameter {
                    what: "rule of prediction sets for another mix",
                    value: f64::NAN,
                    allowed: "lac or lac-by-class",
                });
            }
        };
        Ok(PredictionSets::ByClass(rule))
    }

    /// Finds the score threshold for a precision under the mix, as [`HeldOut::answer_threshold`] does, on labels thinned to it.
    ///
    /// # Errors
    /// If the precision is not between 0 and 1.
    pub fn answer_threshold(&self, precision: f64) -> Result<Option<AnswerThreshold>, MetricsError> {
        let rows = self.thinned();
        let answers: Vec<f64> = rows.iter().map(|&row| self.answer[row]).collect();
        let right: Vec<bool> = rows.iter().map(|&row| self.right[row]).collect();
        answer_threshold(&answers, &right, precision, HeldOut::DELTA)
    }

    /// Draws labels with the shares of the mix: a label of class y is kept with probability w(y) relative to the largest weight. One
    /// label of each group is drawn first.
    pub fn thinned(&self) -> Vec<usize> {
        let weight = |row: usize| self.weights[self.label[row] as usize];
        let rows = one_of_each_group(&self.group, self.label.len(), Seed(0));
        let largest = rows.iter().map(|&row| weight(row)).fold(0.0, f64::max);
        let is_kept = |&row: &usize| {
            Seed(0).stream(Domain::Conformal, THINNING, row as u64).uniform() * largest < weight(row)
        };
        rows.into_iter().filter(is_kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four classes at the corners of a square, with noise: the exact posterior under equal shares, as logits.
    fn drawn(n: usize, shares: &[f64; 4], seed: u64) -> LabelLogits {
        let mut stream = Seed(seed).stream(Domain::Bootstrap, 0, 0);
        let mut labels = LabelLogits { classes: 4, ..LabelLogits::default() };
        for _ in 0..n {
            let mut left = stream.uniform();
            let label = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            let label = label.unwrap_or(3);
            let corner = |class: usize| {
                [if class.is_multiple_of(2) { 1.0 } else { -1.0 }, if class < 2 { 1.0 } else { -1.0 }]
            };
            let x = corner(label).map(|mean| mean + stream.normal());
            labels.labels.push(label as u32);
            let logit = |class: usize| (corner(class)[0] * x[0] + corner(class)[1] * x[1]) as f32;
            labels.logits.extend((0..4).map(logit));
        }
        labels
    }

    const EQUAL: [f64; 4] = [0.25; 4];
    const OTHER: [f64; 4] = [0.7, 0.15, 0.1, 0.05];

    #[test]
    fn weighted_sets_cover_another_mix_and_plain_ones_do_not() {
        let weights = mix_weights(&OTHER, &EQUAL);
        let mut covered = [0.0; 2];
        let mut sizes = [0.0; 2];
        for seed in 0..60 {
            let labels = drawn(300, &EQUAL, seed);
            let adapted = AdaptedLabels::new(&labels, &weights).unwrap();
            let new = drawn(400, &OTHER, 1_000 + seed);
            for (n, rule) in [SetRule::Lac, SetRule::LacByClass].into_iter().enumerate() {
                let sets = adapted.sets(rule, 0.9).unwrap();
                let mut p = [0.0; 4];
                for (row, label) in new.labels.iter().enumerate() {
                    let mut logits = new.row(row).to_vec();
                    adapt_logits(&mut logits, &weights);
                    Temperature::IDENTITY.probabilities_into(&logits, &mut p);
                    let set = sets.set(&p, 0);
                    covered[n] += f64::from(u8::from(set.contains(label))) / (60.0 * 400.0);
                    sizes[n] += set.len() as f64 / (60.0 * 400.0);
                }
            }
            assert!(adapted.sets(SetRule::Aps, 0.9).is_err());
        }
        // The coverage of a draw varies by about 0.03, its mean over sixty by 0.004.
        assert!(covered.iter().all(|&covered| (0.89..0.945).contains(&covered)), "{covered:?}");
        assert!(sizes[0] < 0.9 * sizes[1], "weighted sets are smaller than those by class: {sizes:?}");
    }

    /// At most a tenth of the draws may guarantee a precision that does not hold under the mix; of 200 draws, 33 are three deviations
    /// more.
    #[test]
    fn thinned_labels_show_the_precision_of_the_mix() {
        let weights = mix_weights(&OTHER, &EQUAL);
        let new = drawn(20_000, &OTHER, 9_999);
        let truth = AdaptedLabels::new(&new, &weights).unwrap();
        let mut broken = 0;
        let mut found = 0;
        for seed in 0..200 {
            let labels = drawn(400, &EQUAL, seed);
            let adapted = AdaptedLabels::new(&labels, &weights).unwrap();
            let Some(threshold) = adapted.answer_threshold(0.93).unwrap() else { continue };
            found += 1;
            let answered = (0..new.len()).filter(|&row| truth.answer[row] >= threshold.threshold);
            let (right, all) =
                answered.fold((0, 0), |(right, all), row| (right + usize::from(truth.right[row]), all + 1));
            broken += u32::from((right as f64) < 0.93 * f64::from(all));
        }
        assert!(broken <= 33 && found > 50, "{broken} of {found} found");
    }

    #[test]
    fn equal_weights_change_nothing() {
        let mut labels = drawn(100, &EQUAL, 1);
        let adapted = AdaptedLabels::new(&labels, &[1.0; 4]).unwrap();
        assert_eq!(adapted.thinned().len(), 100);
        let PredictionSets::ByClass(rule) = adapted.sets(SetRule::Lac, 0.9).unwrap() else {
            panic!("by class")
        };
        let plain = crate::conformal::Conformal::from_scores(adapted.lac, crate::conformal::Score::Lac, 0.1);
        assert_eq!(rule.threshold(2), plain.unwrap().threshold);
        assert!(AdaptedLabels::new(&labels, &[1.0; 3]).is_err());
        assert!(AdaptedLabels::new(&labels, &[1.0, 0.0, 1.0, 1.0]).is_err());
        // No set leaves out a class that the model could not know.
        labels.logits[labels.labels[0] as usize] = LabelLogits::UNSEEN;
        let adapted = AdaptedLabels::new(&labels, &[1.0; 4]).unwrap();
        assert!(adapted.lac[0] == HeldOut::MAX_SCORE && !adapted.right[0]);
    }
}
