//! The first half of a step: the outputs of the network for a batch.
//!
//! Which images are normalised together by BatchNorm is part of the method and changes results, so there are three named kinds of
//! steps ([`StepKind`]). They differ in the images of this first pass, and in how [`learn`](crate::learn) uses its outputs.
//! BatchNorm normalises one micro-batch at a time; the plan covers all of them.

use calmix_core::matrix::Matrix;
use calmix_core::method::{BaseLoss, Method};
use calmix_core::micro_batching::{MicroBatchRows, Partition};
use calmix_core::mixup::pair::Space;
use calmix_core::observation::{Observation, Rows};
use calmix_core::pseudo::Base;
use calmix_recipe::step_kind::StepKind;
use tch::{TchError, Tensor};

use crate::batch::Batch;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::images::{Input, InputRows};
use crate::micro_batch_plan::{Image, LocalPlan, Mixture};
use crate::network::Output;
use crate::network::pass::BatchNormMode;
use crate::network::statistics::RunningStatistics;

/// A batch with the network's outputs. It owns everything that [`Engine::learn`] needs.
#[derive(Debug)]
pub struct Observed {
    pub(crate) step: u64,
    pub(crate) partition: Partition,
    pub(crate) first_pass: FirstPass,
    /// `[x; u_weak; u_strong]` of each micro-batch, one micro-batch after the other; then the views of partners.
    pub(crate) images: InputRows,
    /// BatchNorm's running statistics, a copy for each micro-batch.
    pub(crate) statistics: Vec<RunningStatistics>,
    /// The second pass of the released code; `None` if it was not run.
    pub(crate) second_pass: Option<Vec<Output>>,
    pub(crate) labels: Vec<u32>,
    labelled_ids: Vec<u64>,
    unlabelled_ids: Vec<u64>,
    logits: HostRows,
    features: HostRows,
}

/// The first pass of a step.
#[derive(Debug)]
pub(crate) enum FirstPass {
    /// `[x; u_weak]`, without a gradient.
    Weak,
    /// `[x; u_weak; u_strong]` of each micro-batch, ready for differentiation.
    Whole(Vec<Option<Output>>),
    /// The same without a gradient. Each micro-batch is run again when it is learned from, so that only one micro-batch's graph
    /// is in memory at a time.
    WholeAgain,
}

impl FirstPass {
    /// Takes the output of a micro-batch whose graph is still in memory, if any.
    pub(crate) fn take(&mut self, micro_batch: usize) -> Option<Output> {
        match self {
            Self::Whole(kept) => kept.get_mut(micro_batch).and_then(Option::take),
            Self::Weak | Self::WholeAgain => None,
        }
    }
}

impl Engine {
    /// Runs the network on a batch. `mixing` says whether the step may have mixtures; without them, `Concat` needs only one pass.
    ///
    /// Non-finite numbers are not an error here, because all processes of a group have to be notified of them first.
    ///
    /// # Errors
    /// If the batch or its partition is inconsistent, or libtorch fails.
    pub fn observe(&self, method: &Method, batch: &Batch<'_>, mixing: bool) -> Result<Observed, EngineError> {
        let (model, kind) = (self.model(), self.settings().step);
        let twice = method.base_loss == BaseLoss::Twice;
        if twice && kind != StepKind::Joint {
            let sentence =
                "the released code computes its base loss in two whole passes: use joint steps for it";
            return Err(EngineError::Settings(sentence.to_owned()));
        }
        batch.check(model.input.bytes(), self.settings().classes)?;
        let partition = batch.partition.clone();
        let statistics =
            partition.micro_batches.iter().map(|_| model.statistics.copy()).collect::<Result<_, _>>()?;
        // In supervised training without mixup, nothing is decided by these outputs, so one pass is enough.
        let undecided = method.base == Base::Supervised && method.mixup().is_none();
        let whole = undecided
            || match kind {
                StepKind::Concat => !mixing,
                StepKind::Joint => true,
                StepKind::Lean => false,
            };
        let keeps_graphs = partition.micro_batches.len() == 1 || twice && mixing;
        let mut observed = Observed {
            step: batch.step,
            first_pass: match (whole, keeps_graphs) {
                (false, _) => FirstPass::Weak,
                (true, true) => FirstPass::Whole(Vec::new()),
                (true, false) => FirstPass::WholeAgain,
            },
            images: upload(batch, self)?,
            statistics,
            second_pass: None,
            labels: batch.labelled.labels.to_vec(),
            labelled_ids: batch.labelled.ids.to_vec(),
            unlabelled_ids: batch.unlabelled.ids.to_vec(),
            logits: HostRows::default(),
            features: HostRows::default(),
            partition,
        };
        for n in 0..observed.partition.micro_batches.len() {
            observed.run_first_pass(self, method, n)?;
        }
        Ok(observed)
    }

    /// Runs the second pass of the released code, with the mixtures in the batch. Its outputs replace those of the first pass.
    ///
    /// # Errors
    /// If the plan does not match, or libtorch fails.
    pub fn observe_again(
        &self,
        method: &Method,
        observed: &mut Observed,
        plan: &LocalPlan,
    ) -> Result<(), EngineError> {
        let image = self.model().input.bytes();
        plan.check(&observed.partition, self.settings().classes, image)?;
        observed.receive(self, plan)?;
        (observed.logits, observed.features) = (HostRows::default(), HostRows::default());
        let mut second = Vec::new();
        for (n, part_plan) in plan.micro_batches.iter().enumerate() {
            let part = observed.partition.micro_batches[n].clone();
            let whole = observed.normalised(self, n, 0, micro_batch_images(&part))?;
            let images = Tensor::f_cat(&[&whole, &observed.mixed(self, &part_plan.mixes)?], 0)?;
            let output = self.model().forward(&images, &observed.statistics[n], BatchNormMode::Train)?;
            observed.fetch(method, &part, &images, &output)?;
            second.push(output);
        }
        observed.second_pass = Some(second);
        Ok(())
    }
}

impl Observed {
    /// Returns the outputs for the rows of this process, micro-batch by micro-batch.
    ///
    /// # Errors
    /// If libtorch has returned a wrong number of rows.
    pub fn observation(&self) -> Result<Observation<'_>, EngineError> {
        let (x, u) = (self.labelled_ids.len(), self.unlabelled_ids.len());
        let Self { logits, features, .. } = self;
        Ok(Observation {
            labelled: Rows {
                ids: &self.labelled_ids,
                logits: logits.labelled(x)?,
                features: features.labelled(x)?,
            },
            labels: &self.labels,
            unlabelled: Rows {
                ids: &self.unlabelled_ids,
                logits: logits.unlabelled(u)?,
                features: features.unlabelled(u)?,
            },
        })
    }

    pub fn is_finite(&self) -> bool {
        self.logits.is_finite() && self.features.is_finite()
    }

    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    fn run_first_pass(&mut self, engine: &Engine, method: &Method, n: usize) -> Result<(), EngineError> {
        let part = self.partition.micro_batches[n].clone();
        let keeps_graph = matches!(self.first_pass, FirstPass::Whole(_));
        let _no_gradient = (!keeps_graph).then(tch::no_grad_guard);
        let (count, mode) = match self.first_pass {
            FirstPass::Weak => (part.labelled.len() + part.unlabelled.len(), BatchNormMode::TrainFrozen),
            FirstPass::WholeAgain => (micro_batch_images(&part), BatchNormMode::TrainFrozen),
            FirstPass::Whole(_) => (micro_batch_images(&part), BatchNormMode::Train),
        };
        let images = self.normalised(engine, n, 0, count)?;
        let output = engine.model().forward(&images, &self.statistics[n], mode)?;
        self.fetch(method, &part, &images, &output)?;
        if let FirstPass::Whole(kept) = &mut self.first_pass {
            kept.push(Some(output));
        }
        Ok(())
    }

    /// Fetches the outputs for `[x; u_weak]`, which are the first rows, from the device.
    fn fetch(
        &mut self,
        method: &Method,
        part: &MicroBatchRows,
        images: &Tensor,
        output: &Output,
    ) -> Result<(), TchError> {
        let (x, u) = (part.labelled.len(), part.unlabelled.len());
        self.logits.add(&rows(&output.logits, 0, x + u)?, x)?;
        match method.similarity_space() {
            Some(Space::Feature) => self.features.add(&rows(&output.features, 0, x + u)?, x),
            Some(Space::Pixel) => self.features.add(&Input::flat(&rows(images, 0, x + u)?)?, x),
            Some(Space::Logit) | None => Ok(()),
        }
    }

    /// Returns rows of `[x; u_weak; u_strong]` of a micro-batch as the input of the network.
    pub(crate) fn normalised(
        &self,
        engine: &Engine,
        micro_batch: usize,
        start: usize,
        count: usize,
    ) -> Result<Tensor, TchError> {
        self.images.read(&engine.model().input, self.first(micro_batch) + start, count)
    }

    /// Returns the first row of a micro-batch's images. The views of partners follow the last micro-batch.
    fn first(&self, micro_batch: usize) -> usize {
        self.partition.micro_batches[..micro_batch].iter().map(micro_batch_images).sum()
    }

    /// Appends the views of partners; called once.
    pub(crate) fn receive(&mut self, engine: &Engine, plan: &LocalPlan) -> Result<(), TchError> {
        let local = self.first(self.partition.micro_batches.len());
        if !plan.partners.is_empty() && self.images.len() == local {
            let model = engine.model();
            self.images.append(&InputRows::upload(&[&plan.partners], &model.input, model.device)?)?;
        }
        Ok(())
    }

    pub(crate) fn mixed(&self, engine: &Engine, mixes: &[Mixture]) -> Result<Tensor, TchError> {
        let partners = self.first(self.partition.micro_batches.len());
        let within = |holds: &dyn Fn(&MicroBatchRows) -> bool| {
            let n = self.partition.micro_batches.iter().position(holds).unwrap_or(0);
            (self.first(n), &self.partition.micro_batches[n])
        };
        self.images.mixed(&engine.model().input, mixes, |image| match image {
            Image::Labelled(i) => {
                let (first, part) = within(&|part| part.labelled.contains(&i));
                first + i - part.labelled.start
            }
            Image::Weak(j) => {
                let (first, part) = within(&|part| part.unlabelled.contains(&j));
                first + part.labelled.len() + j - part.unlabelled.start
            }
            Image::Partner(n) => partners + n,
        })
    }
}

fn upload(batch: &Batch<'_>, engine: &Engine) -> Result<InputRows, TchError> {
    let image = engine.model().input.bytes();
    let mut buffers: Vec<&[u8]> = Vec::new();
    for MicroBatchRows { labelled, unlabelled } in &batch.partition.micro_batches {
        for (pixels, rows) in [
            (batch.labelled.pixels, labelled),
            (batch.unlabelled.weak, unlabelled),
            (batch.unlabelled.strong, unlabelled),
        ] {
            buffers.push(pixels.get(rows.start * image..rows.end * image).unwrap_or_default());
        }
    }
    InputRows::upload(&buffers, &engine.model().input, engine.model().device)
}

pub(crate) fn rows(tensor: &Tensor, start: usize, count: usize) -> Result<Tensor, TchError> {
    tensor.f_narrow(0, start as i64, count as i64)
}

/// Returns the number of images in a micro-batch's batch: one view of each labelled row, two of each unlabelled one.
pub(crate) fn micro_batch_images(part: &MicroBatchRows) -> usize {
    part.labelled.len() + 2 * part.unlabelled.len()
}

/// The outputs of all micro-batches, on the host.
#[derive(Debug, Default)]
struct HostRows {
    labelled: Vec<f32>,
    unlabelled: Vec<f32>,
    width: usize,
}

impl HostRows {
    /// Fetches the rows of a micro-batch, of which the first `labelled` are labelled.
    fn add(&mut self, tensor: &Tensor, labelled: usize) -> Result<(), TchError> {
        self.width = tensor.size().get(1).map_or(0, |&width| width as usize);
        let numbers = Vec::<f32>::try_from(&tensor.f_detach()?.f_contiguous()?.f_view([-1])?)?;
        let (first, rest) = numbers.split_at(numbers.len().min(labelled * self.width));
        self.labelled.extend_from_slice(first);
        self.unlabelled.extend_from_slice(rest);
        Ok(())
    }

    fn labelled(&self, rows: usize) -> Result<Matrix<'_>, EngineError> {
        matrix(&self.labelled, rows, self.width)
    }

    fn unlabelled(&self, rows: usize) -> Result<Matrix<'_>, EngineError> {
        matrix(&self.unlabelled, rows, self.width)
    }

    fn is_finite(&self) -> bool {
        self.labelled.iter().chain(&self.unlabelled).all(|number| number.is_finite())
    }
}

fn matrix(numbers: &[f32], rows: usize, width: usize) -> Result<Matrix<'_>, EngineError> {
    Matrix::new(numbers, rows, width).map_err(|error| EngineError::Misfit(error.to_string()))
}
