//! The terms of a step's loss, with their gradients with respect to the logits.
//!
//! The kinds are those of [`LossKind`]. `calmix-engine` computes the same functions on libtorch; here they are differentiated by
//! hand.

use calmix_core::loss::{LossKind, LossTerm};
use calmix_core::method::smoothing::Smoothing;
use calmix_core::mixup::MixLoss;
use calmix_core::plan::StepPlan;
use calmix_core::pseudo::PseudoLabels;
use calmix_core::softmax::{argmax, softmax_into};

/// Keeps the logarithm of FreeMatch's fairness finite (USB's value).
const FAIRNESS_FLOOR: f64 = 1e-12;

/// The rows of a step that have a loss, `[labelled; mixtures; strong]`, with their logits.
#[derive(Debug, Clone, Copy)]
pub struct LossRows<'a> {
    /// The number of classes.
    pub classes: usize,
    /// The classes of the labelled rows.
    pub labels: &'a [u32],
    /// The plan of the step.
    pub plan: &'a StepPlan,
    /// How labels are smoothed.
    pub smoothing: Smoothing,
    /// C logits per row.
    pub logits: &'a [f32],
}

/// The losses of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Losses {
    /// Each term, not yet weighted.
    pub terms: Vec<f64>,
    /// The weighted sum of the terms.
    pub total: f64,
    /// The gradient of the total with respect to the logits, row by row.
    pub by_logits: Vec<f32>,
}

impl LossRows<'_> {
    /// Computes all terms, their weighted sum, and its gradient.
    pub fn losses(&self, terms: &[LossTerm]) -> Losses {
        let mut by_logits = vec![0.0; self.logits.len()];
        let mut losses = Vec::with_capacity(terms.len());
        for term in terms {
            losses.push(self.term(term, &mut by_logits));
        }
        let total = losses.iter().zip(terms).map(|(loss, term)| loss * term.weight).sum();
        Losses { terms: losses, total, by_logits }
    }

    /// Computes one term, and adds its weighted gradient to `by_logits`.
    fn term(&self, term: &LossTerm, by_logits: &mut [f32]) -> f64 {
        let [labelled, mixed, strong] = self.split(self.logits);
        let (by_labelled, by_rest) = by_logits.split_at_mut(labelled.len());
        let (by_mixed, by_strong) = by_rest.split_at_mut(mixed.len());
        let weight = term.weight;
        match term.kind {
            LossKind::Labelled => {
                let share = 1.0 / self.labels.len().max(1) as f64;
                let rows = self.labels.iter().map(|&label| (label, share));
                self.hard_cross_entropy(labelled, rows, weight, by_labelled)
            }
            LossKind::Unlabelled => {
                let PseudoLabels { labels, weights, .. } = &self.plan.pseudo;
                let all = labels.len().max(1) as f64;
                let rows = labels.iter().zip(weights).map(|(&label, &w)| (label, f64::from(w) / all));
                self.hard_cross_entropy(strong, rows, weight, by_strong)
            }
            LossKind::Mixup(loss) => self.mixup(loss, mixed, weight, by_mixed),
            LossKind::Fairness => self.fairness(strong, weight, by_strong),
            LossKind::LogitDistance { margin } => self.logit_distance(strong, margin, weight, by_strong),
        }
    }

    /// Splits numbers into those of the labelled rows, of the mixtures and of the strong rows.
    fn split<'b>(&self, numbers: &'b [f32]) -> [&'b [f32]; 3] {
        let (labelled, rest) = numbers.split_at(self.labels.len() * self.classes);
        let (mixed, strong) = rest.split_at(self.plan.mixes.len() * self.classes);
        [labelled, mixed, strong]
    }

    /// Computes `Σ share·H(y, p)` over rows with a hard label, smoothed.
    fn hard_cross_entropy(
        &self,
        logits: &[f32],
        rows: impl Iterator<Item = (u32, f64)>,
        weight: f64,
        by_logits: &mut [f32],
    ) -> f64 {
        let (on, off) = self.smoothing.on_off(self.classes);
        let all = on + off * (self.classes.max(1) - 1) as f64;
        let mut p = vec![0.0; self.classes];
        let mut loss = 0.0;
        let each = logits.chunks_exact(self.classes).zip(by_logits.chunks_exact_mut(self.classes));
        for ((z, by), (label, share)) in each.zip(rows) {
            if share == 0.0 {
                continue;
            }
            let label = label as usize;
            let log_sum = log_sum_exp(z, &mut p);
            let label_logit = f64::from(z.get(label).copied().unwrap_or_default());
            let sum_of_logits = if off == 0.0 { 0.0 } else { z.iter().map(|&z| f64::from(z)).sum::<f64>() };
            loss += share * (all * log_sum - (on - off) * label_logit - off * sum_of_logits);
            let factor = (weight * share) as f32;
            let off = off as f32;
            let all = all as f32;
            // The gradients of a row add up to zero, so that of the label is computed from the others: near a probability of one,
            // p − 1 would lose its digits.
            let mut others = 0.0;
            for (class, (by, &p)) in by.iter_mut().zip(&p).enumerate() {
                if class != label {
                    let slope = all * p - off;
                    others += slope;
                    *by += factor * slope;
                }
            }
            if let Some(by) = by.get_mut(label) {
                *by -= factor * others;
            }
        }
        loss
    }

    /// Computes L_mix; the weight of each mixture is part of the plan.
    fn mixup(&self, loss: MixLoss, logits: &[f32], weight: f64, by_logits: &mut [f32]) -> f64 {
        let classes = self.classes;
        let targets = self.plan.targets.chunks_exact(classes);
        let rows = logits.chunks_exact(classes).zip(targets).zip(&self.plan.mixes);
        let mut p = vec![0.0; classes];
        let mut sum = 0.0;
        for (((z, target), mix), by) in rows.zip(by_logits.chunks_exact_mut(classes)) {
            let share = f64::from(mix.weight);
            let factor = (weight * share) as f32;
            match loss {
                MixLoss::CrossEntropy => {
                    let log_sum = log_sum_exp(z, &mut p);
                    let all: f32 = target.iter().sum();
                    for ((by, &p), (&z, &target)) in by.iter_mut().zip(&p).zip(z.iter().zip(target)) {
                        sum += share * f64::from(target) * (log_sum - f64::from(z));
                        *by += factor * (all * p - target);
                    }
                }
                MixLoss::BinaryCrossEntropy => {
                    let each = 1.0 / classes.max(1) as f64;
                    for (by, (&z, &target)) in by.iter_mut().zip(z.iter().zip(target)) {
                        let z = f64::from(z);
                        let target = f64::from(target);
                        let smaller = libm::exp(-z.abs());
                        sum += share * each * (z.max(0.0) - z * target + libm::log1p(smaller));
                        let sigmoid =
                            if z >= 0.0 { 1.0 / (1.0 + smaller) } else { smaller / (1.0 + smaller) };
                        *by += factor * (each * (sigmoid - target)) as f32;
                    }
                }
            }
        }
        sum
    }

    /// Computes FreeMatch's fairness, `Σ_c t_c·log q_c`: q is the mean prediction of the selected rows, divided by their
    /// histogram and normalised. A class without a row contributes nothing.
    fn fairness(&self, logits: &[f32], weight: f64, by_logits: &mut [f32]) -> f64 {
        let classes = self.classes;
        let PseudoLabels { weights, fairness_target, .. } = &self.plan.pseudo;
        let selected: Vec<usize> = (0..weights.len()).filter(|&row| weights[row] > 0.0).collect();
        if selected.is_empty() || fairness_target.len() != classes {
            return 0.0;
        }
        let count = selected.len() as f64;
        let mut mean = vec![0.0_f64; classes];
        let mut histogram = vec![0.0_f64; classes];
        let mut predictions = vec![0.0_f32; selected.len() * classes];
        for (&row, p) in selected.iter().zip(predictions.chunks_exact_mut(classes)) {
            softmax_into(&logits[row * classes..(row + 1) * classes], p);
            histogram[argmax(p)] += 1.0 / count;
            mean.iter_mut().zip(&*p).for_each(|(mean, &p)| *mean += f64::from(p) / count);
        }
        let scale: Vec<f64> =
            histogram.iter().map(|&share| if share > 0.0 { 1.0 / share } else { 0.0 }).collect();
        let scaled: Vec<f64> = mean.iter().zip(&scale).map(|(mean, scale)| mean * scale).collect();
        let sum: f64 = scaled.iter().sum();
        let q: Vec<f64> = scaled.iter().map(|number| number / sum).collect();
        let target =
            |class: usize| if histogram[class] > 0.0 { f64::from(fairness_target[class]) } else { 0.0 };
        let loss = (0..classes).map(|class| target(class) * libm::log(q[class] + FAIRNESS_FLOOR)).sum();
        // Chain rule: the gradient with respect to q, to the mean prediction, and then to each row's logits through its softmax.
        let by_q: Vec<f64> = (0..classes).map(|class| target(class) / (q[class] + FAIRNESS_FLOOR)).collect();
        let common: f64 = q.iter().zip(&by_q).map(|(q, by)| q * by).sum();
        let by_mean: Vec<f64> =
            by_q.iter().zip(&scale).map(|(by, scale)| scale * (by - common) / sum).collect();
        for (&row, p) in selected.iter().zip(predictions.chunks_exact(classes)) {
            let inner: f64 = p.iter().zip(&by_mean).map(|(&p, by)| f64::from(p) * by).sum();
            let by_row = &mut by_logits[row * classes..(row + 1) * classes];
            for ((by, &p), by_mean) in by_row.iter_mut().zip(p).zip(&by_mean) {
                *by += (weight * f64::from(p) * (by_mean - inner) / count) as f32;
            }
        }
        loss
    }

    /// Computes the mean of `max(0, max_j z_j − z_c − margin)` over the classes and the selected rows: those with a weight whose
    /// strong view agrees with the pseudo-label.
    fn logit_distance(&self, logits: &[f32], margin: f64, weight: f64, by_logits: &mut [f32]) -> f64 {
        let classes = self.classes;
        let PseudoLabels { labels, weights, .. } = &self.plan.pseudo;
        let margin = margin as f32;
        let rows = || logits.chunks_exact(classes).zip(labels.iter().zip(weights));
        let share =
            |z: &[f32], label: u32, w: f32| if argmax(z) == label as usize { f64::from(w) } else { 0.0 };
        let all: f64 = rows().map(|(z, (&label, &w))| share(z, label, w)).sum();
        if all == 0.0 {
            return 0.0;
        }
        let mut loss = 0.0;
        for ((z, (&label, &w)), by) in rows().zip(by_logits.chunks_exact_mut(classes)) {
            let share = share(z, label, w) / all / classes as f64;
            if share == 0.0 {
                continue;
            }
            let largest = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let factor = (weight * share) as f32;
            let mut beyond = 0.0;
            for (by, &z) in by.iter_mut().zip(z) {
                let distance = largest - z - margin;
                if distance > 0.0 {
                    loss += share * f64::from(distance);
                    *by -= factor;
                    beyond += 1.0;
                }
            }
            // Equal largest logits share the gradient of the maximum.
            let ties = z.iter().filter(|&&z| z == largest).count() as f32;
            for (by, _) in by.iter_mut().zip(z).filter(|(_, z)| **z == largest) {
                *by += factor * beyond / ties;
            }
        }
        loss
    }
}

/// Writes softmax(`logits`) into `p`, and returns log Σ exp.
pub(crate) fn log_sum_exp(logits: &[f32], p: &mut [f32]) -> f64 {
    softmax_into(logits, p);
    // log Σ exp = z − log p for any class; it is most accurate with the largest probability.
    let top = argmax(logits);
    let likelihood = p.get(top).copied().unwrap_or(1.0);
    f64::from(logits.get(top).copied().unwrap_or_default()) - libm::log(f64::from(likelihood))
}

#[cfg(test)]
mod tests {
    use calmix_core::mixup::{Mix, Row};

    use super::*;

    const CLASSES: usize = 4;

    fn plan() -> StepPlan {
        let mix = |lambda: f32, weight| Mix {
            a: Row::Labelled(0),
            b: Row::Unlabelled(0),
            lambda,
            class_a: 1,
            class_b: 2,
            weight,
        };
        StepPlan {
            pseudo: PseudoLabels {
                labels: vec![0, 3, 1, 2, 2],
                weights: vec![1.0, 0.4, 0.0, 0.9, 0.7],
                fairness_target: vec![0.5, 0.1, 0.2, 0.2],
            },
            mixes: vec![mix(0.7, 0.5), mix(0.6, 0.25)],
            targets: vec![0.0, 0.7, 0.3, 0.0, 0.1, 0.5, 0.3, 0.1],
            ..StepPlan::default()
        }
    }

    fn logits() -> Vec<f32> {
        (0..9 * CLASSES).map(|n| ((n * 37 + 11) % 29) as f32 / 7.0 - 2.0).collect()
    }

    /// The gradient of each kind of term is the slope of its loss.
    #[test]
    fn gradients_are_slopes() {
        let plan = plan();
        let labels = [1, 3];
        let kinds = [
            LossKind::Labelled,
            LossKind::Unlabelled,
            LossKind::Mixup(MixLoss::CrossEntropy),
            LossKind::Mixup(MixLoss::BinaryCrossEntropy),
            LossKind::Fairness,
            LossKind::LogitDistance { margin: 0.3 },
        ];
        for smoothing in [Smoothing::None, Smoothing::Uniform(0.1), Smoothing::OtherClasses(0.2)] {
            for kind in kinds {
                let terms = [LossTerm { kind, weight: 0.6 }];
                let at = |logits: &[f32]| {
                    LossRows { classes: CLASSES, labels: &labels, plan: &plan, smoothing, logits }
                        .losses(&terms)
                };
                let base = logits();
                let gradient = at(&base).by_logits;
                let mut is_zero = true;
                for n in 0..base.len() {
                    let moved = |by: f32| {
                        let mut logits = base.clone();
                        logits[n] += by;
                        at(&logits).total
                    };
                    let step = 1.0 / 256.0;
                    let slope = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
                    let apart = (slope - f64::from(gradient[n])).abs();
                    assert!(apart < 2e-5, "{kind:?} {smoothing:?} {n}: {slope} is not {}", gradient[n]);
                    is_zero &= gradient[n] == 0.0;
                }
                assert!(!is_zero, "{kind:?} has no gradient");
            }
        }
    }

    #[test]
    fn terms_without_rows_are_zero() {
        let plan = StepPlan::default();
        let logits = [1.0, 0.0, 0.0, 0.0];
        let rows =
            LossRows { classes: 4, labels: &[0], plan: &plan, smoothing: Smoothing::None, logits: &logits };
        let kinds = [
            LossKind::Unlabelled,
            LossKind::Fairness,
            LossKind::LogitDistance { margin: 0.0 },
            LossKind::Mixup(MixLoss::CrossEntropy),
        ];
        let terms = kinds.map(|kind| LossTerm { kind, weight: 1.0 });
        assert_eq!(rows.losses(&terms).total, 0.0);
    }
}
