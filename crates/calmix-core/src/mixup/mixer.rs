//! Turns chosen pairs into mixtures with targets and weights.

use super::{MixLoss, Mixup, PairWeight, PseudoTarget};
use crate::method::smoothing::Smoothing;
use crate::observation::{Observation, Row};
use crate::pseudo::PseudoLabels;
use crate::rng::Seed;
use crate::softmax::{confidence, softmax_into};

/// One mixture: `λ·a + (1 − λ)·b`, images and targets alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// The first row, which λ multiplies: the labelled one in CalibrateMix's pairs.
    pub a: Row,
    /// The second row.
    pub b: Row,
    /// λ, the share of `a` in the mixture, in [0, 1].
    pub lambda: f32,
    /// The (pseudo-)label of `a`.
    pub class_a: u32,
    /// The (pseudo-)label of `b`.
    pub class_b: u32,
    /// The factor in the mixup loss: 1/|D_M|, times the weight of the pair and that of the mixup term at this step.
    pub weight: f32,
}

/// A batch with its pseudo-labels, and the rules for mixing it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mixer<'a> {
    pub mixup: &'a Mixup,
    pub batch: &'a Observation<'a>,
    pub pseudo: &'a PseudoLabels,
    pub seed: Seed,
    pub step: u64,
}

impl Mixer<'_> {
    pub(crate) fn id(&self, row: Row) -> u64 {
        match row {
            Row::Labelled(i) => self.batch.labelled.ids[i],
            Row::Unlabelled(j) => self.batch.unlabelled.ids[j],
        }
    }

    fn class(&self, row: Row) -> u32 {
        match row {
            Row::Labelled(i) => self.batch.labels[i],
            Row::Unlabelled(j) => self.pseudo.labels[j],
        }
    }

    /// Returns whether a row may be mixed: a pseudo-labelled one may need a minimum confidence.
    pub(crate) fn is_mixable(&self, row: Row) -> bool {
        match row {
            // Compare in f32, the precision of the confidence.
            Row::Unlabelled(j) if self.mixup.min_confidence > 0.0 => {
                confidence(self.batch.unlabelled.logits.row(j)) >= self.mixup.min_confidence as f32
            }
            _ => true,
        }
    }

    /// Returns the mixtures of one kind of pairs. `kind` is its number, so that every kind draws its own λ.
    pub(crate) fn mix(&self, kind: u64, pairs: &[(Row, Row)]) -> Vec<Mix> {
        let first: Vec<u64> = pairs.iter().map(|&(a, _)| self.id(a)).collect();
        let lambdas = self.mixup.draw_lambda(&first, self.seed.child(kind), self.step);
        let share = |row| match (self.mixup.pair_weight, row) {
            (PairWeight::Base, Row::Unlabelled(j)) => self.pseudo.weights[j],
            _ => 1.0,
        };
        let mix = |(&(a, b), lambda): (&(Row, Row), f32)| Mix {
            a,
            b,
            lambda,
            class_a: self.class(a),
            class_b: self.class(b),
            weight: share(a) * share(b),
        };
        let mut mixes: Vec<Mix> = pairs.iter().zip(lambdas).map(mix).collect();
        if self.mixup.loss == MixLoss::BinaryCrossEntropy {
            average(&mut mixes);
        }
        mixes
    }

    /// Returns D_M, the mixtures of all kinds, with weights: the share of each in the mean, times `term`.
    pub(crate) fn union(&self, kinds: Vec<Vec<Mix>>, term: f32) -> Vec<Mix> {
        let mut all: Vec<Mix> = kinds.into_iter().flatten().collect();
        if self.mixup.loss == MixLoss::CrossEntropy {
            average(&mut all);
        }
        for mix in &mut all {
            mix.weight *= term;
        }
        all
    }

    /// Computes the smoothed target ỹ = λ·y_a + (1 − λ)·y_b of each mixture, one row of C after the other.
    pub(crate) fn targets(&self, mixes: &[Mix], smoothing: Smoothing) -> Vec<f32> {
        let classes = self.batch.classes();
        let mut targets = vec![0.0; mixes.len() * classes];
        for (mix, target) in mixes.iter().zip(targets.chunks_exact_mut(classes.max(1))) {
            self.add(mix.a, mix.lambda, target);
            self.add(mix.b, 1.0 - mix.lambda, target);
            smoothing.apply(target);
        }
        targets
    }

    /// Adds `share` of the target of a row.
    fn add(&self, row: Row, share: f32, target: &mut [f32]) {
        // The one-hot share of the target; the rest is the predicted probabilities.
        let hard = match (row, self.mixup.pseudo_target) {
            (Row::Unlabelled(_), PseudoTarget::Soft) => 0.0,
            (Row::Unlabelled(j), PseudoTarget::Blended) => self.pseudo.weights[j],
            _ => 1.0,
        };
        if let (Row::Unlabelled(j), true) = (row, hard < 1.0) {
            let mut soft = vec![0.0; target.len()];
            softmax_into(self.batch.unlabelled.logits.row(j), &mut soft);
            for (y, p) in target.iter_mut().zip(soft) {
                *y += share * (1.0 - hard) * p;
            }
        }
        if hard > 0.0 {
            target[self.class(row) as usize] += share * hard;
        }
    }
}

/// Divides the weights by the number of mixtures, so that their sum becomes a mean.
fn average(mixes: &mut [Mix]) {
    let count = mixes.len() as f32;
    for mix in mixes {
        mix.weight /= count;
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::matrix::Matrix;
    use crate::observation::Rows;
    use crate::rng::Domain;

    #[derive(Deserialize)]
    struct Golden {
        case: u64,
        target: Vec<f64>,
    }

    /// 1,000 targets, computed by NumPy (tests/golden/method.py).
    #[test]
    fn blended_targets() {
        let file = include_str!("../../tests/golden/blended.jsonl");
        let cases: Vec<Golden> =
            file.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(cases.len(), 1000);
        let mixup = Mixup { pseudo_target: PseudoTarget::Blended, ..Mixup::default() };
        for Golden { case, target } in cases {
            let mut s = Seed(2026).stream(Domain::Bootstrap, 7, case);
            let classes = 2 + s.index(5);
            let z: Vec<f32> = (0..classes).map(|_| ((s.uniform() - 0.5) * 10.0) as f32).collect();
            let (label, lambda) = (s.index(classes) as u32, s.uniform() as f32);
            let weights = [0.0, 1.0, s.uniform() as f32];
            let weight = weights[s.index(3)];
            let rows = |ids| Rows {
                ids,
                logits: Matrix::new(&z, 1, classes).unwrap(),
                features: Matrix::new(&[], 1, 0).unwrap(),
            };
            let batch = Observation { labelled: rows(&[1]), labels: &[label], unlabelled: rows(&[2]) };
            let pseudo = PseudoLabels::new(vec![crate::softmax::argmax(&z) as u32], vec![weight]);
            let mixer = Mixer { mixup: &mixup, batch: &batch, pseudo: &pseudo, seed: Seed(0), step: 0 };
            let mut mixes = mixer.mix(0, &[(Row::Labelled(0), Row::Unlabelled(0))]);
            mixes[0].lambda = lambda;
            for (found, expected) in mixer.targets(&mixes, Smoothing::None).iter().zip(&target) {
                // λ, w and a softmax in f32.
                assert!(
                    (f64::from(*found) - expected).abs() < 1e-6,
                    "case {case}: {found} is not {expected}"
                );
            }
        }
    }
}
