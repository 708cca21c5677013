//! The terms of a micro-batch's loss, by kind, in f32. The sum over the micro-batches of a group is the group's loss.

use calmix_core::loss::LossKind;
use calmix_core::method::smoothing::Smoothing;
use calmix_core::micro_batching::Partition;
use calmix_core::mixup::MixLoss;
use calmix_core::pseudo::PseudoLabels;
use tch::{Device, Kind, Reduction, TchError, Tensor};

use crate::micro_batch_plan::MicroBatchPlan;
use crate::scalar::guarded;

/// The inputs of the terms of a micro-batch.
#[derive(Debug)]
pub(crate) struct MicroBatchOutput<'a> {
    pub(crate) labels: &'a [u32],
    pub(crate) plan: &'a MicroBatchPlan,
    /// The logits of the base pass, and of the second one if the released code runs it.
    pub(crate) passes: Vec<BaseLogits<'a>>,
    /// The logits of the mixtures, if any.
    pub(crate) mixed: Option<Tensor>,
}

/// The logits of one base pass, with its pseudo-labels.
#[derive(Debug)]
pub(crate) struct BaseLogits<'a> {
    pub(crate) labelled: Tensor,
    pub(crate) strong: Tensor,
    pub(crate) pseudo: &'a PseudoLabels,
}

/// The inputs that all micro-batches have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) smoothing: Smoothing,
    pub(crate) partition: &'a Partition,
    pub(crate) device: Device,
}

impl Terms<'_> {
    pub(crate) fn term(self, kind: LossKind, output: &MicroBatchOutput<'_>) -> Result<Tensor, TchError> {
        let of_passes = |term: &dyn Fn(&BaseLogits<'_>) -> Result<Tensor, TchError>| {
            let mut terms = output.passes.iter().map(term);
            let first = terms.next().unwrap_or_else(|| self.zero())?;
            terms.try_fold(first, |sum, term| sum.f_add(&term?))
        };
        match kind {
            LossKind::Labelled => of_passes(&|pass| self.labelled(pass, output.labels)),
            LossKind::Unlabelled => of_passes(&|pass| self.unlabelled(pass)),
            LossKind::Fairness => of_passes(&|pass| self.fairness(pass)),
            LossKind::LogitDistance { margin } => of_passes(&|pass| self.logit_distance(pass, margin)),
            LossKind::Mixup(loss) => match &output.mixed {
                Some(logits) => self.mixup(loss, logits, output.plan),
                None => self.zero(),
            },
        }
    }

    /// Computes the micro-batch's part of L_L, the mean over the labelled rows of the group.
    fn labelled(self, pass: &BaseLogits<'_>, labels: &[u32]) -> Result<Tensor, TchError> {
        let rows = hard_cross_entropy(&pass.labelled, &self.indices(labels)?, self.smoothing)?;
        let (local, all) = (labels.len(), self.partition.labelled);
        let mean = rows.f_mean(Kind::Float)?;
        if local == all { Ok(mean) } else { guarded(|| mean.f_mul_scalar(local as f64 / all as f64)) }
    }

    /// Computes the micro-batch's part of L_U: the weighted sum over its unlabelled rows, divided by their number in the group.
    fn unlabelled(self, pass: &BaseLogits<'_>) -> Result<Tensor, TchError> {
        let PseudoLabels { labels, weights, .. } = pass.pseudo;
        if labels.is_empty() {
            return self.zero();
        }
        let all = self.partition.unlabelled as f32;
        let weights: Vec<f32> = weights.iter().map(|w| w / all).collect();
        hard_cross_entropy(&pass.strong, &self.indices(labels)?, self.smoothing)?
            .f_dot(&Tensor::f_from_slice(&weights)?.f_to_device(self.device)?)
    }

    /// Computes L_mix; the weight of each mixture is part of the plan.
    fn mixup(self, loss: MixLoss, logits: &Tensor, plan: &MicroBatchPlan) -> Result<Tensor, TchError> {
        let targets = Tensor::f_from_slice(&plan.targets)?
            .f_to_device(self.device)?
            .f_view([plan.mixes.len() as i64, -1])?;
        let losses = match loss {
            MixLoss::BinaryCrossEntropy => binary_cross_entropy(logits, &targets)?,
            MixLoss::CrossEntropy => soft_cross_entropy(logits, &targets)?,
        };
        let weights: Vec<f32> = plan.mixes.iter().map(|mix| mix.weight).collect();
        losses.f_dot(&Tensor::f_from_slice(&weights)?.f_to_device(self.device)?)
    }

    /// Computes FreeMatch's fairness of the micro-batch, divided by the number of micro-batches per group; zero if no row is
    /// selected.
    fn fairness(self, pass: &BaseLogits<'_>) -> Result<Tensor, TchError> {
        let PseudoLabels { weights, fairness_target, .. } = pass.pseudo;
        let selected: Vec<i64> = (0..).zip(weights).filter(|&(_, &w)| w > 0.0).map(|(row, _)| row).collect();
        if selected.is_empty() || fairness_target.is_empty() {
            return self.zero();
        }
        let selected = Tensor::f_from_slice(&selected)?.f_to_device(self.device)?;
        let target = Tensor::f_from_slice(fairness_target)?.f_to_device(self.device)?;
        let fairness = fairness(&pass.strong.f_index_select(0, &selected)?, &target)?;
        guarded(|| fairness.f_div_scalar(self.micro_batches_of_group()))
    }

    /// Computes the logit distance of the micro-batch, divided by the number of micro-batches per group; zero if no row is
    /// selected.
    fn logit_distance(self, pass: &BaseLogits<'_>, margin: f64) -> Result<Tensor, TchError> {
        let PseudoLabels { labels, weights, .. } = pass.pseudo;
        if labels.is_empty() {
            return self.zero();
        }
        let weights = Tensor::f_from_slice(weights)?.f_to_device(self.device)?;
        let selected =
            pass.strong.f_argmax(1, false)?.f_eq_tensor(&self.indices(labels)?)?.f_mul(&weights)?;
        let rows = logit_distance(&pass.strong, margin)?;
        // Without a selected row the sum is zero, whatever it is divided by.
        let all = selected.f_sum(Kind::Float)?;
        let divisor = all.f_where_self(&guarded(|| all.f_gt(0.0))?, &all.f_ones_like()?)?;
        let mean = rows.f_dot(&selected)?.f_div(&divisor)?;
        guarded(|| mean.f_div_scalar(self.micro_batches_of_group()))
    }

    fn micro_batches_of_group(self) -> f64 {
        f64::from(self.partition.micro_batching.micro_batches.get())
    }

    fn indices(self, labels: &[u32]) -> Result<Tensor, TchError> {
        let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
        Tensor::f_from_slice(&labels)?.f_to_device(self.device)
    }

    fn zero(self) -> Result<Tensor, TchError> {
        Tensor::f_zeros([] as [i64; 0], (Kind::Float, self.device))
    }
}

/// Computes H(y, p) = `−Σ_c y_c log p_c` of each row, for smoothed hard labels.
fn hard_cross_entropy(logits: &Tensor, labels: &Tensor, smoothing: Smoothing) -> Result<Tensor, TchError> {
    let classes = logits.size().last().copied().unwrap_or(0);
    let (on, off) = smoothing.on_off(classes as usize);
    let log_p = logits.f_log_softmax(1, Kind::Float)?;
    let chosen = log_p.f_gather(1, &labels.f_unsqueeze(1)?, false)?.f_squeeze_dim(1)?;
    if off == 0.0 {
        return chosen.f_neg();
    }
    // The target is `off` for every class and `on` for the row's own.
    let all = log_p.f_sum_dim_intlist(1, false, Kind::Float)?;
    guarded(|| chosen.f_mul_scalar(off - on))?.f_sub(&guarded(|| all.f_mul_scalar(off))?)
}

/// Computes H(y, p) of each row, for a distribution over the classes.
fn soft_cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let log_p = logits.f_log_softmax(1, Kind::Float)?;
    log_p.f_mul(targets)?.f_sum_dim_intlist(1, false, Kind::Float)?.f_neg()
}

/// Computes `Σ_c t_c·log q_c`, where q is the mean prediction of the rows, divided by their histogram and normalised. A class
/// without a row contributes nothing.
fn fairness(logits: &Tensor, target: &Tensor) -> Result<Tensor, TchError> {
    /// Keeps the logarithm finite (USB's value).
    const FLOOR: f64 = 1e-12;
    let classes = logits.size().last().copied().unwrap_or(0);
    let p = logits.f_softmax(1, Kind::Float)?;
    let labels = p.f_argmax(1, false)?.f_one_hot(classes)?;
    let histogram = labels.f_to_kind(Kind::Float)?.f_mean_dim(0, false, Kind::Float)?;
    let is_present = guarded(|| histogram.f_gt(0.0))?;
    let scale = histogram.f_reciprocal()?.f_where_self(&is_present, &histogram)?;
    let scaled = p.f_mean_dim(0, false, Kind::Float)?.f_mul(&scale)?;
    let q = scaled.f_div(&scaled.f_sum(Kind::Float)?)?;
    guarded(|| q.f_add_scalar(FLOOR))?.f_log()?.f_mul(target)?.f_mul(&is_present)?.f_sum(Kind::Float)
}

/// Computes the mean over the classes of `max(0, max_j z_j − z_c − margin)` for each row.
fn logit_distance(logits: &Tensor, margin: f64) -> Result<Tensor, TchError> {
    let logits = logits.f_to_kind(Kind::Float)?;
    let largest = logits.f_amax(1, true)?;
    let distance = largest.f_sub(&logits)?;
    guarded(|| distance.f_sub_scalar(margin))?.f_relu()?.f_mean_dim(1, false, Kind::Float)
}

/// Computes the mean over the classes of the binary cross-entropy with logits, the mixup loss of the released code.
fn binary_cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let none = None::<&Tensor>;
    logits.f_binary_cross_entropy_with_logits(targets, none, none, Reduction::None)?.f_mean_dim(
        1,
        false,
        Kind::Float,
    )
}

#[cfg(test)]
mod tests {
    use calmix_core::micro_batching::MicroBatching;
    use calmix_core::pseudo::FreeState;
    use calmix_core::rng::{Domain, Seed, Stream};
    use calmix_core::softmax::argmax;

    use super::*;

    fn close(got: &Tensor, wanted: &[f64]) {
        let got: Vec<f32> = got.try_into().unwrap();
        assert_eq!(got.len(), wanted.len());
        for (a, b) in got.iter().zip(wanted) {
            // One rounding of log-softmax and one of the sum, in f32.
            assert!((f64::from(*a) - b).abs() < 1e-6, "{a} is not {b}");
        }
    }

    fn logits() -> Tensor {
        Tensor::from_slice2(&[[1.0_f32, 2.0, 4.0], [0.5, -1.0, 0.0]])
    }

    fn log_p() -> Vec<Vec<f64>> {
        [[1.0_f64, 2.0, 4.0], [0.5, -1.0, 0.0]]
            .iter()
            .map(|row| {
                let sum: f64 = row.iter().map(|z| z.exp()).sum();
                row.iter().map(|z| z - sum.ln()).collect()
            })
            .collect()
    }

    #[test]
    fn hard_labels_pick_their_class() {
        let labels = Tensor::from_slice(&[2_i64, 1]);
        let p = log_p();
        close(&hard_cross_entropy(&logits(), &labels, Smoothing::None).unwrap(), &[-p[0][2], -p[1][1]]);
    }

    #[test]
    fn smoothing_is_a_soft_target() {
        let labels = Tensor::from_slice(&[2_i64, 1]);
        for smoothing in [Smoothing::Uniform(0.1), Smoothing::OtherClasses(0.3)] {
            let mut targets = [0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
            targets.chunks_mut(3).for_each(|row| smoothing.apply(row));
            let wanted: Vec<f64> = targets
                .chunks(3)
                .zip(log_p())
                .map(|(y, p)| -y.iter().zip(p).map(|(&y, p)| f64::from(y) * p).sum::<f64>())
                .collect();
            close(&hard_cross_entropy(&logits(), &labels, smoothing).unwrap(), &wanted);
            let soft = Tensor::from_slice(&targets).reshape([2, 3]);
            close(&soft_cross_entropy(&logits(), &soft).unwrap(), &wanted);
        }
    }

    #[test]
    fn binary_cross_entropy_is_a_mean_over_classes() {
        let targets = Tensor::from_slice2(&[[0.25_f32, 0.0, 0.75], [1.0, 0.0, 0.0]]);
        let bce = |z: f64, y: f64| z.max(0.0) - z * y + (-z.abs()).exp().ln_1p();
        let wanted = [
            (bce(1.0, 0.25) + bce(2.0, 0.0) + bce(4.0, 0.75)) / 3.0,
            (bce(0.5, 1.0) + bce(-1.0, 0.0) + bce(0.0, 0.0)) / 3.0,
        ];
        close(&binary_cross_entropy(&logits(), &targets).unwrap(), &wanted);
    }

    #[test]
    fn large_logits_stay_finite() {
        let logits = Tensor::from_slice2(&[[1e4_f32, -1e4]]);
        close(&hard_cross_entropy(&logits, &Tensor::from_slice(&[0_i64]), Smoothing::None).unwrap(), &[0.0]);
        close(&hard_cross_entropy(&logits, &Tensor::from_slice(&[1_i64]), Smoothing::None).unwrap(), &[2e4]);
    }

    #[derive(serde::Deserialize)]
    struct Golden {
        case: u64,
        fairness: f64,
        fairness_gradient: Vec<f64>,
        distance: f64,
        distance_gradient: Vec<f64>,
    }

    /// 1,000 cases of semilearn's fairness term and of the penalty, with PyTorch's gradients
    /// (calmix-core's tests/golden/freematch.py).
    #[test]
    fn fairness_and_logit_distance() {
        let file = include_str!("../../tests/golden/terms.jsonl");
        let cases: Vec<Golden> =
            file.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(cases.len(), 1000);
        for expected in cases {
            let s = &mut Seed(2026).stream(Domain::Bootstrap, 6, expected.case);
            let (classes, rows) = (2 + s.index(4), 1 + s.index(4));
            let z: Vec<f32> = (0..rows * classes).map(|_| ((s.uniform() - 0.5) * 8.0) as f32).collect();
            let weight = |s: &mut Stream| {
                let weights = [0.0, 1.0, s.uniform() as f32];
                weights[s.index(3)]
            };
            let weights: Vec<f32> = (0..rows).map(|_| weight(s)).collect();
            let label = |row: &[f32], s: &mut Stream| match s.below(4) {
                0 => s.below(classes as u64) as u32,
                _ => argmax(row) as u32,
            };
            let labels: Vec<u32> = z.chunks(classes).map(|row| label(row, s)).collect();
            let marginal = (0..classes).map(|_| 0.1 + s.uniform()).collect();
            let histogram = (0..classes).map(|_| if s.below(4) == 0 { 0.0 } else { s.uniform() }).collect();
            let margin = 3.0 * s.uniform();
            let fairness_target = FreeState { threshold: 0.5, marginal, histogram }.fairness_target();

            let pseudo = PseudoLabels { labels, weights, fairness_target };
            let plan = MicroBatchPlan::default();
            let terms = Terms {
                smoothing: Smoothing::None,
                partition: &Partition::whole(0, rows),
                device: Device::Cpu,
            };
            let kinds = [LossKind::Fairness, LossKind::LogitDistance { margin }];
            let wanted = [
                (expected.fairness, &expected.fairness_gradient),
                (expected.distance, &expected.distance_gradient),
            ];
            for (kind, (loss, gradient)) in kinds.into_iter().zip(wanted) {
                let strong =
                    Tensor::from_slice(&z).reshape([rows as i64, classes as i64]).set_requires_grad(true);
                let pass = BaseLogits {
                    labelled: strong.narrow(0, 0, 0),
                    strong: strong.shallow_clone(),
                    pseudo: &pseudo,
                };
                let output = MicroBatchOutput { labels: &[], plan: &plan, passes: vec![pass], mixed: None };
                let term = terms.term(kind, &output).unwrap();
                let found = if term.requires_grad() {
                    let gradients = Tensor::run_backward(&[&term], &[&strong], false, false);
                    Vec::<f32>::try_from(&gradients[0].reshape([-1])).unwrap()
                } else {
                    vec![0.0; rows * classes]
                };
                let apart = (term.double_value(&[]) - loss).abs();
                // Softmax, means and logarithms of numbers near one, in f32.
                assert!(
                    apart < 1e-5 * loss.abs().max(1.0),
                    "case {}, {}: {apart:e}",
                    expected.case,
                    kind.name()
                );
                for (found, wanted) in found.iter().zip(gradient) {
                    let apart = (f64::from(*found) - wanted).abs();
                    assert!(apart < 1e-5, "case {}, {}: {found} is not {wanted}", expected.case, kind.name());
                }
            }
        }
    }

    #[test]
    fn a_term_of_a_mean_is_averaged_over_the_micro_batches_of_a_group() {
        let pseudo = PseudoLabels {
            fairness_target: vec![0.5, 0.2, 0.3],
            ..PseudoLabels::new(vec![2, 0], vec![1.0; 2])
        };
        let plan = MicroBatchPlan::default();
        let term = |partition: &Partition, kind| {
            let pass = BaseLogits { labelled: logits().narrow(0, 0, 0), strong: logits(), pseudo: &pseudo };
            let output = MicroBatchOutput { labels: &[], plan: &plan, passes: vec![pass], mixed: None };
            let terms = Terms { smoothing: Smoothing::None, partition, device: Device::Cpu };
            terms.term(kind, &output).unwrap().double_value(&[])
        };
        let (one, mut four) = (Partition::whole(0, 2), Partition::whole(0, 2));
        four.micro_batching = MicroBatching::new(2, 4);
        for kind in [LossKind::Fairness, LossKind::LogitDistance { margin: 0.5 }] {
            assert!(term(&one, kind) != 0.0);
            assert!((term(&four, kind) - term(&one, kind) / 4.0).abs() < 1e-7);
        }
    }
}
