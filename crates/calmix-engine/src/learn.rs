//! The second half of a step: from the network's outputs and their plan to new weights.
//!
//! The backward pass goes micro-batch by micro-batch. The contribution of a micro-batch (its gradient, running statistics, losses
//! and tally, in one buffer) is added along the tree immediately. So only one micro-batch's graph and a few buffers are in
//! memory, however many micro-batches there are, and the sum over all processes is one exchange.

mod terms;

use calmix_core::loss::LossTerm;
use calmix_core::method::Method;
use calmix_dist::ProcessGroup;
use calmix_recipe::step_kind::{StepKind, SumKind};
use tch::{Kind, TchError, Tensor};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::learn::terms::{BaseLogits, MicroBatchOutput, Terms};
use crate::micro_batch_plan::{LocalPlan, MicroBatchPlan};
use crate::network::Output;
use crate::network::pass::BatchNormMode;
use crate::observe::{FirstPass, Observed, micro_batch_images, rows};
use crate::scalar::guarded;

#[derive(Debug, Clone, PartialEq)]
pub struct StepOutput {
    /// Each term of the loss before weighting, in the order of [`Method::loss_terms`].
    pub losses: Vec<f64>,
    pub total: f64,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Whether the weights were updated: in f16 a step is skipped when the scaled gradient overflows.
    pub updated: bool,
    /// The sum of the tallies of all micro-batches.
    pub tally: Vec<f32>,
}

impl Engine {
    /// Updates the weights by the plan for an observed batch. This process has some micro-batches of the step, and `processes`
    /// have the others. If the contributions are summed along the tree, the result does not depend on how they are distributed.
    ///
    /// # Errors
    /// If the plan does not match the batch, if another process is lost, or if an output, a loss or the gradient is not finite.
    /// Nothing has changed then, and the error names the step.
    pub fn learn(
        &mut self,
        processes: &ProcessGroup,
        method: &Method,
        mut observed: Observed,
        plan: &LocalPlan,
        rate: f64,
    ) -> Result<StepOutput, EngineError> {
        if !rate.is_finite() {
            return Err(EngineError::Settings(format!("the learning rate {rate} is not a finite number")));
        }
        let step = observed.step;
        if !observed.is_finite() {
            return Err(EngineError::NotFinite { step, what: "output of the network" });
        }
        plan.check(&observed.partition, self.settings().classes, self.model().input.bytes())?;
        observed.receive(self, plan)?;
        let terms = method.loss_terms();
        let all = observed.partition.micro_batching.all().count();
        let mut sums = processes.begin_sum(all);
        for (n, part_plan) in plan.micro_batches.iter().enumerate() {
            let contribution = self.contribution(method, &terms, &mut observed, part_plan, n)?;
            processes.add_to_sum(&mut sums, contribution)?;
        }
        let _no_gradient = tch::no_grad_guard();
        let sum = match self.settings().sum {
            SumKind::Tree => processes.finish_sum(sums)?,
            SumKind::AllReduce => processes.all_reduce_sums(sums)?,
        };
        let mut sum = StepSum::of(&sum, self, &observed, terms.len() as i64)?;
        if self.loss_scale().factor != 1.0 {
            let factor = self.loss_scale().factor;
            let _ = guarded(|| sum.gradient.f_mul_scalar_(1.0 / factor))?;
        }
        let output = sum.output(terms.len())?;
        if let Some((term, _)) = terms.iter().zip(&output.losses).find(|(_, loss)| !loss.is_finite()) {
            return Err(EngineError::NotFinite { step, what: term.kind.name() });
        }
        if !output.gradient_norm.is_finite() {
            return if self.loss_scale_overflowed() {
                Ok(StepOutput { updated: false, ..output })
            } else {
                Err(EngineError::NotFinite { step, what: "gradient" })
            };
        }
        self.update(sum.gradient, &sum.statistics, output.gradient_norm, rate)?;
        Ok(output)
    }

    /// Computes the contribution of a micro-batch to the step: the gradient of its loss, statistics, losses, and its tally.
    fn contribution(
        &self,
        method: &Method,
        terms: &[LossTerm],
        observed: &mut Observed,
        plan: &MicroBatchPlan,
        n: usize,
    ) -> Result<Tensor, EngineError> {
        let kept = observed.first_pass.take(n);
        let observed = &*observed;
        let output = self.micro_batch_output(observed, kept, plan, n)?;
        let device = self.model().device;
        let of = Terms { smoothing: method.smoothing, partition: &observed.partition, device };
        let losses = terms.iter().map(|term| of.term(term.kind, &output)).collect::<Result<Vec<_>, _>>()?;
        let total = total(terms, &losses)?;
        let scaled = guarded(|| total.f_mul_scalar(self.loss_scale().factor))?;
        let gradients = Tensor::f_run_backward(&[scaled], &[&self.model().parameters.buffer], false, false)?;
        let [gradient] = &gradients[..] else {
            return Err(EngineError::Misfit("there is nothing to differentiate".to_owned()));
        };
        let losses: Vec<&Tensor> = losses.iter().chain([&total]).collect();
        let losses = Tensor::f_stack(&losses, 0)?.f_detach()?.f_to_kind(Kind::Float)?;
        let tally = Tensor::f_from_slice(&plan.tally)?.f_to_device(device)?;
        Ok(Tensor::f_cat(&[gradient, observed.statistics[n].numbers(), &losses, &tally], 0)?)
    }

    /// Computes the logits of a micro-batch's rows with a loss, ready for differentiation.
    fn micro_batch_output<'a>(
        &self,
        observed: &'a Observed,
        kept: Option<Output>,
        plan: &'a MicroBatchPlan,
        n: usize,
    ) -> Result<MicroBatchOutput<'a>, EngineError> {
        let part = observed.partition.micro_batches[n].clone();
        let (x, u, mixes) = (part.labelled.len(), part.unlabelled.len(), plan.mixes.len());
        let pass = |images: &Tensor, mode| self.model().forward(images, &observed.statistics[n], mode);
        let base = |logits: &Tensor, strong, pseudo| -> Result<_, TchError> {
            Ok(BaseLogits { labelled: rows(logits, 0, x)?, strong: rows(logits, strong, u)?, pseudo })
        };
        let mut passes = Vec::with_capacity(2);
        let mut mixed = None;
        let first = match (&observed.first_pass, kept) {
            (FirstPass::Weak, _) => None,
            (_, Some(kept)) => Some(kept),
            (_, None) => {
                let images = observed.normalised(self, n, 0, micro_batch_images(&part))?;
                Some(pass(&images, BatchNormMode::Train)?)
            }
        };
        if let Some(output) = first {
            passes.push(base(&output.logits, x + u, &plan.pseudo)?);
        } else {
            // The rows are [x; mixed; u_weak; u_strong], or the same without the weak views.
            let weak = if self.settings().step == StepKind::Concat { u } else { 0 };
            let labelled = observed.normalised(self, n, 0, x)?;
            let unlabelled = observed.normalised(self, n, x + u - weak, weak + u)?;
            let images = Tensor::f_cat(&[&labelled, &observed.mixed(self, &plan.mixes)?, &unlabelled], 0)?;
            let logits = pass(&images, BatchNormMode::Train)?.logits;
            passes.push(base(&logits, x + mixes + weak, &plan.pseudo)?);
            mixed = (mixes > 0).then(|| rows(&logits, x, mixes)).transpose()?;
        }
        match (&observed.second_pass, &plan.second) {
            (Some(second), Some(pseudo)) => {
                let logits = &second[n].logits;
                passes.push(base(logits, x + u, pseudo)?);
                mixed = (mixes > 0).then(|| rows(logits, micro_batch_images(&part), mixes)).transpose()?;
            }
            (None, None) => {}
            _ => return Err(EngineError::Misfit("a second pass without its pseudo-labels".to_owned())),
        }
        if mixes > 0 && mixed.is_none() {
            // Joint: a separate pass of the mixtures, which does not change the running statistics.
            let images = observed.mixed(self, &plan.mixes)?;
            mixed = Some(pass(&images, BatchNormMode::TrainFrozen)?.logits);
        }
        let labels = observed.labels.get(part.labelled).unwrap_or_default();
        Ok(MicroBatchOutput { labels, plan, passes, mixed })
    }
}

/// Computes `Σ weight·term`.
fn total(terms: &[LossTerm], losses: &[Tensor]) -> Result<Tensor, EngineError> {
    let mut total: Option<Tensor> = None;
    for (LossTerm { weight, .. }, loss) in terms.iter().zip(losses) {
        let loss =
            if *weight == 1.0 { loss.shallow_clone() } else { guarded(|| loss.f_mul_scalar(*weight))? };
        total = Some(match total {
            Some(total) => total.f_add(&loss)?,
            None => loss,
        });
    }
    total.ok_or_else(|| EngineError::Misfit("a loss without terms".to_owned()))
}

/// The sum of the contributions of all micro-batches, split into its parts.
struct StepSum {
    gradient: Tensor,
    statistics: Tensor,
    /// The terms, followed by their total.
    losses: Tensor,
    tally: Tensor,
}

impl StepSum {
    /// Splits the sum. The gradient is the mean over the groups of a step; BatchNorm's statistics are the mean over all
    /// micro-batches.
    fn of(sum: &Tensor, engine: &Engine, observed: &Observed, terms: i64) -> Result<Self, EngineError> {
        let parameters = engine.layout().len() as i64;
        let numbers = engine.model().statistics.numbers().numel() as i64;
        let tally = sum.numel() as i64 - parameters - numbers - (terms + 1);
        if tally < 0 {
            return Err(EngineError::Misfit("the sum over the micro-batches is too short".to_owned()));
        }
        let mut gradient = sum.f_narrow(0, 0, parameters)?;
        let mut statistics = sum.f_narrow(0, parameters, numbers)?;
        let mut losses = sum.f_narrow(0, parameters + numbers, terms + 1)?;
        let tally = sum.f_narrow(0, parameters + numbers + terms + 1, tally)?;
        let micro_batching = observed.partition.micro_batching;
        let groups = micro_batching.groups.get();
        let micro_batches = micro_batching.count().get();
        if groups > 1 {
            let _ = guarded(|| gradient.f_div_scalar_(f64::from(groups)))?;
            let _ = guarded(|| losses.f_div_scalar_(f64::from(groups)))?;
        }
        if micro_batches > 1 {
            let _ = guarded(|| statistics.f_div_scalar_(micro_batches as f64))?;
        }
        Ok(Self { gradient, statistics, losses, tally })
    }

    /// Reads the metrics in one transfer from the device.
    fn output(&self, terms: usize) -> Result<StepOutput, EngineError> {
        let norm = norm(&self.gradient)?.f_view([1])?;
        let metrics: Vec<f32> = Tensor::f_cat(&[&self.losses, &norm, &self.tally], 0)?.try_into()?;
        let missing = || EngineError::Misfit("a metric is missing".to_owned());
        let (losses, rest) = metrics.split_at_checked(terms).ok_or_else(missing)?;
        let (&[total, gradient_norm], tally) = rest.split_first_chunk().ok_or_else(missing)?;
        Ok(StepOutput {
            losses: losses.iter().map(|&loss| f64::from(loss)).collect(),
            total: f64::from(total),
            gradient_norm: f64::from(gradient_norm),
            updated: true,
            tally: tally.to_vec(),
        })
    }
}

/// Computes the Euclidean norm of a flat buffer, by rows and then over the rows: a single sum of millions of squares in f32 loses
/// digits on the CPU.
fn norm(buffer: &Tensor) -> Result<Tensor, TchError> {
    const ROW: i64 = 4096;
    let length = buffer.numel() as i64;
    let rows = length / ROW;
    let whole = buffer.f_narrow(0, 0, rows * ROW)?.f_view([rows, ROW])?;
    let rest = buffer.f_narrow(0, rows * ROW, length - rows * ROW)?.f_norm()?;
    let norms = guarded(|| whole.f_norm_scalaropt_dim(2.0, 1, false))?;
    Tensor::f_cat(&[norms, rest.f_view([1])?], 0)?.f_norm()
}
