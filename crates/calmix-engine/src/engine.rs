//! The engine: a model that learns.

use calmix_core::method::{BaseLoss, Method};
use calmix_core::observation::Observation;
use calmix_core::plan::{PlanError, StepPlan};
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};
use tch::{Kind, TchError, Tensor};

use crate::batch::{Batch, Cut};
use crate::contribution::{Sum, contribution};
use crate::device::Device;
use crate::error::EngineError;
use crate::images::{Images, Normalisation, Size};
use crate::loss_scale::LossScale;
use crate::model::Model;
use crate::network::layer::Norm;
use crate::network::{Architecture, FirstBlock, Layout, Network};
use crate::optimiser::Sgd;
use crate::parameters::{Flat, decayed};
use crate::precision::Precision;
use crate::statistics::RunningStatistics;
use crate::step::{Asked, Outcome, Passes, Step};
use crate::task::Tasks;
use crate::weights;
use calmix_dist::Processes;

/// Everything that makes an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The network.
    pub architecture: Architecture,
    /// What the first block of the later stages of a Wide ResNet reads.
    pub first_block: FirstBlock,
    /// C.
    pub classes: usize,
    /// The size of all images.
    pub size: Size,
    /// What their channels are shifted and scaled by.
    pub normalisation: Normalisation,
    /// Where it runs.
    pub device: Device,
    /// In how many bits.
    pub precision: Precision,
    /// The optimiser.
    pub optimiser: Sgd,
    /// How much of the average of the weights is kept at each step.
    pub ema_decay: f64,
    /// What BatchNorm's running statistics take of each batch, where it is not the network's own share.
    pub norm_momentum: Option<f64>,
    /// The norm that a gradient is cut down to.
    pub clip: Option<f64>,
    /// How the passes of a step are cut.
    pub passes: Passes,
}

/// Which weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The ones that are trained.
    Live,
    /// Their exponential moving average; BatchNorm's statistics are the live ones.
    Ema,
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learnt {
    /// L_L.
    pub labelled: f64,
    /// L_U, before λ_U.
    pub unlabelled: f64,
    /// L_mix.
    pub mix: f64,
    /// `L_L + λ_U·L_U + L_mix`.
    pub total: f64,
    /// The norm of the gradient, before it was clipped.
    pub gradient_norm: f64,
    /// Whether the weights moved: in f16 a step is left out when the scaled gradient overflows.
    pub moved: bool,
}

/// Logits and features of some images, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// C numbers a row.
    pub logits: Vec<f32>,
    /// D numbers a row.
    pub features: Vec<f32>,
}

/// Everything of an engine that changes: what a checkpoint keeps. The first three are safetensors files.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The live weights and BatchNorm's statistics.
    pub live: Vec<u8>,
    /// The average of the weights, with BatchNorm's statistics: a model to use.
    pub ema: Vec<u8>,
    /// The optimiser's momentum.
    pub momentum: Vec<u8>,
    /// The factor of the loss.
    pub loss_scale: LossScale,
}

/// A model that learns: weights, their average, their momentum.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    model: Model,
    average: Flat,
    velocity: Flat,
    loss_scale: LossScale,
}

impl Engine {
    /// A network before its first step; with the same seed the same bits on every machine.
    ///
    /// # Errors
    /// If the device is not there or has too little memory.
    pub fn new(settings: Settings, seed: Seed) -> Result<Self, EngineError> {
        settings.device.check()?;
        let device = settings.device.torch();
        let network = Network::new(settings.architecture, settings.first_block, settings.classes);
        let velocity = Flat::zeros(network.layout(), device)?;
        let model = Model::new(network, &settings, seed)?;
        let average = model.parameters.copy()?;
        let loss_scale = if settings.precision == Precision::F16 { LossScale::HALF } else { LossScale::ONE };
        Ok(Self { settings, model, average, velocity, loss_scale })
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Names and shapes of the parameters.
    pub fn layout(&self) -> &Layout {
        self.model.network.layout()
    }

    /// Learns from a batch: one group, in one part, in this process. The engine asks `plan` what to learn once it has
    /// seen the batch; it never meets a rule of the method itself.
    ///
    /// # Errors
    /// As [`step_in_parts`](Self::step_in_parts).
    pub fn step(
        &mut self,
        method: &Method,
        batch: &Batch<'_>,
        rate: f64,
        mut plan: impl FnMut(Asked, &Observation<'_>) -> Result<StepPlan, PlanError>,
    ) -> Result<Learnt, EngineError> {
        let cut = Cut::whole(batch);
        let plan = |asked, seen: &Observation<'_>| plan(asked, seen).map(Tasks::from);
        self.step_in_parts(&Processes::alone(), method, (batch, &cut), rate, plan)
    }

    /// Learns from a step that is cut into parts, of which this process has some and `processes` have the others. What
    /// is learnt does not depend on who has which.
    ///
    /// # Errors
    /// If the batch, its cut or its plan contradicts itself, if there is no plan, if another process is lost, or if a
    /// loss or the gradient is not finite: nothing has changed then, and the error names the step.
    pub fn step_in_parts(
        &mut self,
        processes: &Processes,
        method: &Method,
        (batch, cut): (&Batch<'_>, &Cut),
        rate: f64,
        plan: impl FnMut(Asked, &Observation<'_>) -> Result<Tasks, PlanError>,
    ) -> Result<Learnt, EngineError> {
        if method.base_loss == BaseLoss::Twice && self.settings.passes == Passes::Lean {
            return Err(EngineError::Settings(
                "the released code counts its base loss in two whole passes: take joint steps for it"
                    .to_owned(),
            ));
        }
        if !rate.is_finite() {
            return Err(EngineError::Settings(format!("the learning rate {rate} is not a finite number")));
        }
        batch.check(cut, self.settings.size, self.settings.classes)?;
        let outcomes = Step::new(&self.model, method, batch, cut)?.run(self.settings.passes, plan)?;
        let mut contributions = Vec::with_capacity(outcomes.len());
        for Outcome { terms, statistics } in outcomes {
            let total = terms.total(method.unlabelled_weight)?;
            let scaled = total.f_mul_scalar(self.loss_scale.factor)?;
            let gradients =
                Tensor::f_run_backward(&[scaled], &[&self.model.parameters.buffer], false, false)?;
            let [gradient] = &gradients[..] else {
                return Err(EngineError::Misfit("nothing to differentiate".to_owned()));
            };
            contributions.push(contribution(gradient, statistics.numbers(), &terms, &total)?);
        }
        let _no_gradient = tch::no_grad_guard();
        let sum = processes.tree_sum(contributions)?;
        let parameters = self.layout().len() as i64;
        let Sum { mut gradient, statistics, losses } = Sum::of(&sum, parameters, cut.all, cut.groups)?;
        if self.loss_scale.factor != 1.0 {
            let _ = gradient.f_mul_scalar_(1.0 / self.loss_scale.factor)?;
        }
        // One transfer from the device for all that is looked at.
        let figures = Tensor::f_cat(&[losses, norm(&gradient)?.f_view([1])?], 0)?;
        let figures: Vec<f32> = figures.try_into()?;
        let [labelled, unlabelled, mix, total, gradient_norm] =
            figures.iter().map(|&figure| f64::from(figure)).collect::<Vec<_>>()[..]
        else {
            return Err(EngineError::Misfit("a figure is missing".to_owned()));
        };
        let mut learnt = Learnt { labelled, unlabelled, mix, total, gradient_norm, moved: true };
        let losses = [(labelled, "labelled loss"), (unlabelled, "unlabelled loss"), (mix, "mixup loss")];
        if let Some(&(_, what)) = losses.iter().find(|(loss, _)| !loss.is_finite()) {
            return Err(EngineError::NotFinite { step: batch.step, what });
        }
        if !gradient_norm.is_finite() {
            learnt.moved = false;
            return if self.loss_scale.overflowed() {
                Ok(learnt)
            } else {
                Err(EngineError::NotFinite { step: batch.step, what: "gradient" })
            };
        }
        self.loss_scale.held();
        self.model.statistics.move_on(&statistics)?;
        self.update(&mut gradient, gradient_norm, rate)?;
        Ok(learnt)
    }

    /// Clips, takes the optimiser's step and moves the average on.
    fn update(&mut self, gradient: &mut Tensor, norm: f64, rate: f64) -> Result<(), EngineError> {
        if let Some(limit) = self.settings.clip
            && norm > limit
        {
            // As `clip_grad_norm_`, which keeps the divisor away from zero.
            let _ = gradient.f_mul_scalar_(limit / (norm + 1e-6))?;
        }
        let decayed = decayed(self.model.network.layout());
        let parameters = &mut self.model.parameters.buffer;
        self.settings.optimiser.step(rate, parameters, &mut self.velocity.buffer, gradient, decayed)?;
        // average = decay·average + (1 − decay)·parameters.
        let _ = self.average.buffer.f_lerp_(parameters, 1.0 - self.settings.ema_decay)?;
        Ok(())
    }

    /// What the network says about images as they are, by BatchNorm's running statistics: the evaluation.
    ///
    /// # Errors
    /// If `pixels` are not whole images of the size, or the device has too little memory for so many.
    pub fn look(&self, pixels: &[u8], which: Which) -> Result<Seen, EngineError> {
        let each = self.model.size.bytes();
        if each == 0 || !pixels.len().is_multiple_of(each) {
            let rows = pixels.len() / each.max(1);
            return Err(EngineError::Batch { batch: "evaluation", rows, what: "bytes", got: pixels.len() });
        }
        let rows = pixels.len() / each;
        let _no_gradient = tch::no_grad_guard();
        let images = Images::upload(&[pixels], self.model.size, self.model.device)?;
        let images = images.normalised(&self.model.normaliser, 0, rows)?;
        let parameters = match which {
            Which::Live => &self.model.parameters,
            Which::Ema => &self.average,
        };
        let output = self.model.forward_with(parameters, &images, &self.model.statistics, Norm::Running)?;
        let numbers = |tensor: &Tensor| tensor.f_contiguous()?.f_view([-1])?.try_into();
        Ok(Seen { logits: numbers(&output.logits)?, features: numbers(&output.features)? })
    }

    /// The weights, their average and their momentum in a few bytes: other bits, another number.
    ///
    /// # Errors
    /// If the device fails.
    pub fn digest(&self) -> Result<u64, EngineError> {
        let mut digest = 0_u64;
        for buffer in [&self.model.parameters, &self.average, &self.velocity] {
            let bits = buffer.buffer.f_detach()?.f_view_dtype(Kind::Int)?;
            let sum = bits.f_sum(Kind::Int64)?.f_int64_value(&[])?;
            digest = digest.rotate_left(21) ^ sum.cast_unsigned();
        }
        Ok(digest)
    }

    /// Everything that changes.
    ///
    /// # Errors
    /// If the device fails.
    pub fn snapshot(&self) -> Result<Snapshot, EngineError> {
        let (layout, statistics) = (self.layout(), &self.model.statistics);
        Ok(Snapshot {
            live: weights::write(layout, &self.model.parameters, Some(statistics))?,
            ema: weights::write(layout, &self.average, Some(statistics))?,
            momentum: weights::write(layout, &self.velocity, None)?,
            loss_scale: self.loss_scale,
        })
    }

    /// Goes back to a snapshot, bit for bit.
    ///
    /// # Errors
    /// If one of its files is not of this network; nothing has changed then.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        let (layout, device) = (self.layout(), self.model.device);
        let empty = || Flat::zeros(layout, device);
        let (mut live, mut average, mut velocity) = (empty()?, empty()?, empty()?);
        let mut statistics = RunningStatistics::initial(layout, device)?;
        // The statistics of both models are the live ones, so the last file read decides nothing.
        weights::read(layout, &snapshot.ema, &mut average, Some(&mut statistics))?;
        weights::read(layout, &snapshot.live, &mut live, Some(&mut statistics))?;
        weights::read(layout, &snapshot.momentum, &mut velocity, None)?;
        self.model.parameters = live.differentiable()?;
        self.model.statistics = statistics;
        (self.average, self.velocity) = (average, velocity);
        self.loss_scale = snapshot.loss_scale;
        Ok(())
    }
}

/// The Euclidean norm of a flat buffer: by rows, then over the rows, for one sum of millions of squares in f32 loses
/// digits on the processor.
fn norm(buffer: &Tensor) -> Result<Tensor, TchError> {
    const ROW: i64 = 4096;
    let length = buffer.numel() as i64;
    let rows = length / ROW;
    let whole = buffer.f_narrow(0, 0, rows * ROW)?.f_view([rows, ROW])?;
    let rest = buffer.f_narrow(0, rows * ROW, length - rows * ROW)?.f_norm()?;
    let norms = whole.f_norm_scalaropt_dim(2.0, 1, false)?;
    Tensor::f_cat(&[norms, rest.f_view([1])?], 0)?.f_norm()
}
