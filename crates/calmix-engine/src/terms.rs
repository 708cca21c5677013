//! The terms of a shard's loss, by their kinds, in f32. Over all shards of a group they add up to the group's.

use calmix_core::loss::LossKind;
use calmix_core::mixup::MixLoss;
use calmix_core::pseudo::PseudoLabels;
use calmix_core::smoothing::Smoothing;
use tch::{Device, Kind, Reduction, TchError, Tensor};

use crate::partition::Partition;
use crate::shard_plan::ShardPlan;

/// What a shard's terms are computed from.
#[derive(Debug)]
pub(crate) struct ShardOutput<'a> {
    pub(crate) labels: &'a [u32],
    pub(crate) plan: &'a ShardPlan,
    /// Logits of the base pass, and of the second one where the released code makes it.
    pub(crate) passes: Vec<BaseLogits<'a>>,
    /// Logits of the mixtures, where there are any.
    pub(crate) mixed: Option<Tensor>,
}

/// Logits of one base pass, with the pseudo-labels that were decided on it.
#[derive(Debug)]
pub(crate) struct BaseLogits<'a> {
    pub(crate) labelled: Tensor,
    pub(crate) strong: Tensor,
    pub(crate) pseudo: &'a PseudoLabels,
}

/// What the terms of all shards are computed with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) smoothing: Smoothing,
    pub(crate) partition: &'a Partition,
    pub(crate) device: Device,
}

impl Terms<'_> {
    /// A term of a shard.
    pub(crate) fn term(self, kind: LossKind, shard: &ShardOutput<'_>) -> Result<Tensor, TchError> {
        let of_passes = |term: &dyn Fn(&BaseLogits<'_>) -> Result<Tensor, TchError>| {
            let mut terms = shard.passes.iter().map(term);
            let first = terms.next().unwrap_or_else(|| self.zero())?;
            terms.try_fold(first, |sum, term| sum.f_add(&term?))
        };
        match kind {
            LossKind::Labelled => of_passes(&|pass| self.labelled(pass, shard.labels)),
            LossKind::Unlabelled => of_passes(&|pass| self.unlabelled(pass)),
            LossKind::Mixup(loss) => match &shard.mixed {
                Some(logits) => self.mixup(loss, logits, shard.plan),
                None => self.zero(),
            },
        }
    }

    /// L_L: the mean over the labelled rows of the group, as far as they are in the shard.
    fn labelled(self, pass: &BaseLogits<'_>, labels: &[u32]) -> Result<Tensor, TchError> {
        let rows = hard_cross_entropy(&pass.labelled, &self.indices(labels)?, self.smoothing)?;
        let (here, all) = (labels.len(), self.partition.labelled);
        let mean = rows.f_mean(Kind::Float)?;
        if here == all { Ok(mean) } else { mean.f_mul_scalar(here as f64 / all as f64) }
    }

    /// L_U: the weighted sum over the unlabelled rows, divided by the number of them in the group.
    fn unlabelled(self, pass: &BaseLogits<'_>) -> Result<Tensor, TchError> {
        let PseudoLabels { labels, weights } = pass.pseudo;
        if labels.is_empty() {
            return self.zero();
        }
        let all = self.partition.unlabelled as f32;
        let weights: Vec<f32> = weights.iter().map(|w| w / all).collect();
        hard_cross_entropy(&pass.strong, &self.indices(labels)?, self.smoothing)?
            .f_dot(&Tensor::f_from_slice(&weights)?.f_to_device(self.device)?)
    }

    /// L_mix: what each mixture weighs in the group is in the plan.
    fn mixup(self, loss: MixLoss, logits: &Tensor, plan: &ShardPlan) -> Result<Tensor, TchError> {
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

    fn indices(self, labels: &[u32]) -> Result<Tensor, TchError> {
        let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
        Tensor::f_from_slice(&labels)?.f_to_device(self.device)
    }

    fn zero(self) -> Result<Tensor, TchError> {
        Tensor::f_zeros([] as [i64; 0], (Kind::Float, self.device))
    }
}

/// H(y, p) of each row for hard labels, smoothed: `−Σ_c y_c log p_c`.
fn hard_cross_entropy(logits: &Tensor, labels: &Tensor, smoothing: Smoothing) -> Result<Tensor, TchError> {
    let classes = logits.size().last().copied().unwrap_or(0);
    let (on, off) = smoothing.on_off(classes as usize);
    let log_p = logits.f_log_softmax(1, Kind::Float)?;
    let own = log_p.f_gather(1, &labels.f_unsqueeze(1)?, false)?.f_squeeze_dim(1)?;
    if off == 0.0 {
        return own.f_neg();
    }
    // Every class has `off`; the row's own has `on`.
    let all = log_p.f_sum_dim_intlist(1, false, Kind::Float)?;
    (own.f_mul_scalar(off - on)?).f_sub(&all.f_mul_scalar(off)?)
}

/// H(y, p) of each row for a distribution over the classes.
fn soft_cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let log_p = logits.f_log_softmax(1, Kind::Float)?;
    log_p.f_mul(targets)?.f_sum_dim_intlist(1, false, Kind::Float)?.f_neg()
}

/// The mean over the classes of the binary cross-entropy of each, with logits: what the released code compares
/// mixtures with.
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
}
