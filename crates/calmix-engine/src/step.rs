//! One training step: what the network says about a batch, what the plan makes of it, and the loss.
//!
//! The same plan can be run in two ways.
//!
//! - [`Passes::Joint`]: one pass over `[x; u_weak; u_strong]`, then one over the mixtures, both with a gradient.
//!   BatchNorm sees what FixMatch's sees: Algorithm 1 to the letter.
//! - [`Passes::Lean`]: `[x; u_weak]` without a gradient and without a trace in the running statistics, then one pass
//!   with a gradient over `[x; mixtures; u_strong]`. Weak views need no gradient, for everything that is decided on
//!   them is detached anyway; 0.73 of the arithmetic.

use calmix_core::matrix::Matrix;
use calmix_core::method::{BaseLoss, Method};
use calmix_core::mixup::{MixLoss, Row};
use calmix_core::observation::{Observation, Rows};
use calmix_core::pair::Space;
use calmix_core::plan::{PlanError, StepPlan};
use calmix_core::pseudo::{Base, PseudoLabels};
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

use crate::batch::Batch;
use crate::error::EngineError;
use crate::images::Images;
use crate::loss::{binary_cross_entropy, hard_cross_entropy, soft_cross_entropy};
use crate::model::Model;
use crate::network::Output;
use crate::network::layer::Norm;

/// How the passes of a step are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Passes {
    /// As Algorithm 1 has them.
    #[default]
    Joint,
    /// As few as the plan needs.
    Lean,
}

/// For which pass a plan is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The plan of the step.
    Plan,
    /// The released code runs its base algorithm a second time, with the mixtures in the batch: only the
    /// pseudo-labels of this answer are used.
    PseudoLabelsAgain,
}

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

/// What a step has at hand.
pub(crate) struct Step<'a> {
    pub(crate) model: &'a Model,
    pub(crate) method: &'a Method,
    pub(crate) batch: &'a Batch<'a>,
    /// `[x; u_weak; u_strong]`.
    pub(crate) images: Images,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        model: &'a Model,
        method: &'a Method,
        batch: &'a Batch<'a>,
    ) -> Result<Self, EngineError> {
        let buffers = [batch.labelled.pixels, batch.unlabelled.weak, batch.unlabelled.strong];
        Ok(Self { model, method, batch, images: Images::upload(&buffers, model.size, model.device)? })
    }

    /// The terms of the loss, ready to be differentiated.
    pub(crate) fn terms(
        &self,
        passes: Passes,
        mut plan: impl FnMut(Asked, &Observation<'_>) -> Result<StepPlan, PlanError>,
    ) -> Result<Terms, EngineError> {
        // Nothing is decided on what plain supervision sees: one pass is all there is.
        let undecided = self.method.base == Base::Supervised && self.method.mixup.is_none();
        match passes {
            Passes::Lean if !undecided => self.lean(&mut plan),
            Passes::Joint | Passes::Lean => self.joint(&mut plan),
        }
    }

    fn joint(
        &self,
        plan: &mut impl FnMut(Asked, &Observation<'_>) -> Result<StepPlan, PlanError>,
    ) -> Result<Terms, EngineError> {
        let (x, u) = self.batch.rows();
        let all = self.images.normalised(&self.model.normaliser, 0, x + 2 * u)?;
        let seen = self.model.forward(&all, Norm::Learn)?;
        let planned = self.ask(Asked::Plan, &seen, &all, plan)?;
        let mut terms = self.base_terms(&seen.logits, &planned.pseudo, x + u)?;
        if planned.mixes.is_empty() {
            return Ok(terms);
        }
        let mixed = self.images.mixed(&self.model.normaliser, &planned.mixes, x)?;
        let mixed_logits = match self.method.base_loss {
            BaseLoss::Once => self.model.forward(&mixed, Norm::Watch)?.logits,
            BaseLoss::Twice => {
                let again = self.model.forward(&Tensor::f_cat(&[&all, &mixed], 0)?, Norm::Learn)?;
                let pseudo = self.ask(Asked::PseudoLabelsAgain, &again, &all, plan)?.pseudo;
                let second = self.base_terms(&again.logits, &pseudo, x + u)?;
                terms.labelled = terms.labelled.f_add(&second.labelled)?;
                terms.unlabelled = terms.unlabelled.f_add(&second.unlabelled)?;
                rows(&again.logits, x + 2 * u, planned.mixes.len())?
            }
        };
        terms.mix = self.mix_term(&mixed_logits, &planned)?;
        Ok(terms)
    }

    fn lean(
        &self,
        plan: &mut impl FnMut(Asked, &Observation<'_>) -> Result<StepPlan, PlanError>,
    ) -> Result<Terms, EngineError> {
        let (x, u) = self.batch.rows();
        let planned = {
            let _no_gradient = tch::no_grad_guard();
            let weak = self.images.normalised(&self.model.normaliser, 0, x + u)?;
            let seen = self.model.forward(&weak, Norm::Watch)?;
            self.ask(Asked::Plan, &seen, &weak, plan)?
        };
        let labelled = self.images.normalised(&self.model.normaliser, 0, x)?;
        let strong = self.images.normalised(&self.model.normaliser, x + u, u)?;
        let mixed = self.images.mixed(&self.model.normaliser, &planned.mixes, x)?;
        let logits =
            self.model.forward(&Tensor::f_cat(&[&labelled, &mixed, &strong], 0)?, Norm::Learn)?.logits;
        let mixes = planned.mixes.len();
        let mut terms = self.base_terms(&logits, &planned.pseudo, x + mixes)?;
        if mixes > 0 {
            terms.mix = self.mix_term(&rows(&logits, x, mixes)?, &planned)?;
        }
        Ok(terms)
    }

    /// L_L, the mean over the labelled rows, which stand first, and L_U, the weighted sum over all unlabelled rows
    /// divided by their number; their strong views begin at row `strong`.
    fn base_terms(
        &self,
        logits: &Tensor,
        pseudo: &PseudoLabels,
        strong: usize,
    ) -> Result<Terms, EngineError> {
        let (x, u) = self.batch.rows();
        let device = self.model.device;
        let indices = |labels: &[u32]| {
            let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
            Tensor::f_from_slice(&labels)?.f_to_device(device)
        };
        let zero = || Tensor::f_zeros([] as [i64; 0], (tch::Kind::Float, device));
        let smoothing = self.method.smoothing;
        let labelled =
            hard_cross_entropy(&rows(logits, 0, x)?, &indices(self.batch.labelled.labels)?, smoothing)?
                .f_mean(tch::Kind::Float)?;
        let unlabelled = if u == 0 {
            zero()?
        } else {
            let weights: Vec<f32> = pseudo.weights.iter().map(|w| w / u as f32).collect();
            hard_cross_entropy(&rows(logits, strong, u)?, &indices(&pseudo.labels)?, smoothing)?
                .f_dot(&Tensor::f_from_slice(&weights)?.f_to_device(device)?)?
        };
        Ok(Terms { labelled, unlabelled, mix: zero()? })
    }

    /// L_mix: what each mixture weighs is in the plan.
    fn mix_term(&self, logits: &Tensor, plan: &StepPlan) -> Result<Tensor, TchError> {
        let device = self.model.device;
        let targets = Tensor::f_from_slice(&plan.targets)?
            .f_to_device(device)?
            .f_view([plan.mixes.len() as i64, -1])?;
        let losses = match self.method.mixup.map(|mixup| mixup.loss) {
            Some(MixLoss::BinaryCrossEntropy) => binary_cross_entropy(logits, &targets)?,
            Some(MixLoss::CrossEntropy) | None => soft_cross_entropy(logits, &targets)?,
        };
        let weights: Vec<f32> = plan.mixes.iter().map(|mix| mix.weight).collect();
        losses.f_dot(&Tensor::f_from_slice(&weights)?.f_to_device(device)?)
    }

    /// Shows the plan what the network said about `[x; u_weak]`, which stand first in the batch, and checks that the
    /// answer fits.
    fn ask(
        &self,
        asked: Asked,
        seen: &Output,
        images: &Tensor,
        plan: &mut impl FnMut(Asked, &Observation<'_>) -> Result<StepPlan, PlanError>,
    ) -> Result<StepPlan, EngineError> {
        let (x, u) = self.batch.rows();
        let guidance = self.method.mixup.as_ref().and_then(|mixup| mixup.pairing.guidance());
        let features = match guidance.map(|guidance| guidance.space) {
            Some(Space::Feature) => Some(rows(&seen.features, 0, x + u)?),
            Some(Space::Pixel) => {
                let pixels = rows(images, 0, x + u)?.f_permute([0, 2, 3, 1])?;
                Some(pixels.f_reshape([(x + u) as i64, -1])?)
            }
            Some(Space::Logit) | None => None,
        };
        let logits = HostRows::of(Some(&rows(&seen.logits, 0, x + u)?))?;
        let features = HostRows::of(features.as_ref())?;
        let observation = Observation {
            labelled: Rows {
                ids: self.batch.labelled.ids,
                logits: logits.rows(0, x)?,
                features: features.rows(0, x)?,
            },
            labels: self.batch.labelled.labels,
            unlabelled: Rows {
                ids: self.batch.unlabelled.ids,
                logits: logits.rows(x, u)?,
                features: features.rows(x, u)?,
            },
        };
        if !logits.numbers.iter().all(|logit| logit.is_finite()) {
            return Err(EngineError::NotFinite { step: self.batch.step, what: "output of the network" });
        }
        let planned = plan(asked, &observation)?;
        self.check(&planned, logits.width)?;
        Ok(planned)
    }

    fn check(&self, plan: &StepPlan, classes: usize) -> Result<(), EngineError> {
        let (x, u) = self.batch.rows();
        let PseudoLabels { labels, weights } = &plan.pseudo;
        let misfit = |sentence: String| Err(EngineError::Misfit(sentence));
        if labels.len() != u || weights.len() != u {
            return misfit(format!("{} labels and {} weights for {u} rows", labels.len(), weights.len()));
        }
        if let Some(label) = labels.iter().find(|&&label| label as usize >= classes) {
            return misfit(format!("label {label} of {classes} classes"));
        }
        let exists = |row| match row {
            Row::Labelled(i) => i < x,
            Row::Unlabelled(j) => j < u,
        };
        if let Some(mix) = plan.mixes.iter().find(|mix| !exists(mix.a) || !exists(mix.b)) {
            return misfit(format!("a mixture of {:?} and {:?}", mix.a, mix.b));
        }
        if plan.targets.len() != plan.mixes.len() * classes {
            return misfit(format!("{} targets for {} mixtures", plan.targets.len(), plan.mixes.len()));
        }
        Ok(())
    }
}

fn rows(tensor: &Tensor, start: usize, count: usize) -> Result<Tensor, TchError> {
    tensor.f_narrow(0, start as i64, count as i64)
}

/// Rows of numbers, fetched from the device.
struct HostRows {
    numbers: Vec<f32>,
    width: usize,
}

impl HostRows {
    /// Rows of no width where there is nothing.
    fn of(tensor: Option<&Tensor>) -> Result<Self, TchError> {
        let Some(tensor) = tensor else {
            return Ok(Self { numbers: Vec::new(), width: 0 });
        };
        let width = tensor.size().get(1).map_or(0, |&width| width as usize);
        let flat = tensor.f_detach()?.f_contiguous()?.f_view([-1])?;
        Ok(Self { numbers: Vec::<f32>::try_from(&flat)?, width })
    }

    fn rows(&self, start: usize, count: usize) -> Result<Matrix<'_>, EngineError> {
        let numbers = self.numbers.get(start * self.width..(start + count) * self.width).unwrap_or_default();
        Matrix::new(numbers, count, self.width).map_err(|error| EngineError::Misfit(error.to_string()))
    }
}
