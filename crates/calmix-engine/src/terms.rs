//! The terms of a part's loss. Over all parts of a group they add up to the group's.

use calmix_core::method::Method;
use calmix_core::mixup::MixLoss;
use calmix_core::pseudo::PseudoLabels;
use tch::{Device, Kind, TchError, Tensor};

use crate::batch::Cut;
use crate::loss::{binary_cross_entropy, hard_cross_entropy, soft_cross_entropy};
use crate::task::Task;

/// The terms of a loss, as they are added up.
#[derive(Debug)]
pub(crate) struct Terms {
    /// L_L.
    pub(crate) labelled: Tensor,
    /// L_U, before λ_U.
    pub(crate) unlabelled: Tensor,
    /// L_mix.
    pub(crate) mix: Tensor,
}

/// What the terms of all parts are made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weighing<'a> {
    pub(crate) method: &'a Method,
    pub(crate) cut: &'a Cut,
    pub(crate) device: Device,
}

impl Weighing<'_> {
    /// L_L, the mean over the labelled rows of the group, and L_U, the weighted sum over its unlabelled rows divided
    /// by their number; here of one part, whose labelled rows stand first and whose strong views begin at row `strong`.
    pub(crate) fn base(
        self,
        logits: &Tensor,
        labels: &[u32],
        pseudo: &PseudoLabels,
        strong: usize,
    ) -> Result<Terms, TchError> {
        let (x, u) = (labels.len(), pseudo.labels.len());
        let smoothing = self.method.smoothing;
        let of_labels = hard_cross_entropy(&rows(logits, 0, x)?, &self.indices(labels)?, smoothing)?;
        let mut labelled = of_labels.f_mean(Kind::Float)?;
        if x != self.cut.labelled {
            labelled = labelled.f_mul_scalar(x as f64 / self.cut.labelled as f64)?;
        }
        let unlabelled = if u == 0 {
            self.zero()?
        } else {
            let all = self.cut.unlabelled as f32;
            let weights: Vec<f32> = pseudo.weights.iter().map(|w| w / all).collect();
            hard_cross_entropy(&rows(logits, strong, u)?, &self.indices(&pseudo.labels)?, smoothing)?
                .f_dot(&Tensor::f_from_slice(&weights)?.f_to_device(self.device)?)?
        };
        Ok(Terms { labelled, unlabelled, mix: self.zero()? })
    }

    /// L_mix: what each mixture weighs in the group is in the task.
    pub(crate) fn mix(self, logits: &Tensor, task: &Task) -> Result<Tensor, TchError> {
        let targets = Tensor::f_from_slice(&task.targets)?
            .f_to_device(self.device)?
            .f_view([task.mixes.len() as i64, -1])?;
        let losses = match self.method.mixup.map(|mixup| mixup.loss) {
            Some(MixLoss::BinaryCrossEntropy) => binary_cross_entropy(logits, &targets)?,
            Some(MixLoss::CrossEntropy) | None => soft_cross_entropy(logits, &targets)?,
        };
        let weights: Vec<f32> = task.mixes.iter().map(|mix| mix.weight).collect();
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

impl Terms {
    /// `L_L + λ_U·L_U + L_mix`.
    pub(crate) fn total(&self, unlabelled_weight: f64) -> Result<Tensor, TchError> {
        self.labelled.f_add(&self.unlabelled.f_mul_scalar(unlabelled_weight)?)?.f_add(&self.mix)
    }

    /// With the terms of a second pass added.
    pub(crate) fn and(self, second: &Self) -> Result<Self, TchError> {
        Ok(Self {
            labelled: self.labelled.f_add(&second.labelled)?,
            unlabelled: self.unlabelled.f_add(&second.unlabelled)?,
            mix: self.mix,
        })
    }
}

/// Some rows of a tensor.
pub(crate) fn rows(tensor: &Tensor, start: usize, count: usize) -> Result<Tensor, TchError> {
    tensor.f_narrow(0, start as i64, count as i64)
}
