//! One training step: what the network says about a batch, what the plan makes of it, and the loss.
//!
//! A step is run part by part, as its batch is [cut](Cut): BatchNorm sees one part, the plan sees all of them. The same
//! plan can be run in two ways.
//!
//! - [`Passes::Joint`]: one pass over `[x; u_weak; u_strong]`, then one over the mixtures, both with a gradient.
//!   BatchNorm sees what FixMatch's sees: Algorithm 1 to the letter.
//! - [`Passes::Lean`]: `[x; u_weak]` without a gradient and without a trace in the running statistics, then one pass
//!   with a gradient over `[x; mixtures; u_strong]`. Weak views need no gradient, for everything that is decided on
//!   them is detached anyway; 0.73 of the arithmetic.

use calmix_core::matrix::Matrix;
use calmix_core::method::{BaseLoss, Method};
use calmix_core::observation::{Observation, ObservationError, Rows};
use calmix_core::pair::Space;
use calmix_core::plan::PlanError;
use calmix_core::pseudo::Base;
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

use crate::batch::{Batch, Cut, Part};
use crate::error::EngineError;
use crate::images::Images;
use crate::model::Model;
use crate::network::Output;
use crate::network::layer::Norm;
use crate::statistics::RunningStatistics;
use crate::task::{Image, Task, Tasks};
use crate::terms::{Terms, Weighing, rows};

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

/// What a step has at hand.
pub(crate) struct Step<'a> {
    model: &'a Model,
    method: &'a Method,
    batch: &'a Batch<'a>,
    cut: &'a Cut,
    /// `[x; u_weak; u_strong]` of each part, one part after the other; then what is borrowed.
    images: Images,
    /// BatchNorm's running statistics as each part has them.
    statistics: Vec<RunningStatistics>,
}

/// What a part came to: the terms of its loss, ready to be differentiated, and its running statistics.
pub(crate) struct Outcome {
    pub(crate) terms: Terms,
    pub(crate) statistics: RunningStatistics,
}

/// What a part showed to the network, and what came of it.
struct Shown {
    images: Tensor,
    seen: Output,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        model: &'a Model,
        method: &'a Method,
        batch: &'a Batch<'a>,
        cut: &'a Cut,
    ) -> Result<Self, EngineError> {
        let image = model.size.bytes();
        let mut buffers = Vec::new();
        for Part { labelled, unlabelled } in &cut.parts {
            let bytes = |pixels: &'a [u8], rows: &std::ops::Range<usize>| {
                pixels.get(rows.start * image..rows.end * image).unwrap_or_default()
            };
            buffers.push(bytes(batch.labelled.pixels, labelled));
            buffers.push(bytes(batch.unlabelled.weak, unlabelled));
            buffers.push(bytes(batch.unlabelled.strong, unlabelled));
        }
        let images = Images::upload(&buffers, model.size, model.device)?;
        let statistics = cut.parts.iter().map(|_| model.statistics.copy()).collect::<Result<_, _>>()?;
        Ok(Self { model, method, batch, cut, images, statistics })
    }

    /// What each part comes to.
    pub(crate) fn run(
        mut self,
        passes: Passes,
        mut plan: impl FnMut(Asked, &Observation<'_>) -> Result<Tasks, PlanError>,
    ) -> Result<Vec<Outcome>, EngineError> {
        // Nothing is decided on what plain supervision sees: one pass is all there is.
        let undecided = self.method.base == Base::Supervised && self.method.mixup.is_none();
        let terms = match passes {
            Passes::Lean if !undecided => self.lean(&mut plan)?,
            Passes::Joint | Passes::Lean => self.joint(&mut plan)?,
        };
        let outcome = |(terms, statistics)| Outcome { terms, statistics };
        Ok(terms.into_iter().zip(self.statistics).map(outcome).collect())
    }

    fn joint(
        &mut self,
        plan: &mut impl FnMut(Asked, &Observation<'_>) -> Result<Tasks, PlanError>,
    ) -> Result<Vec<Terms>, EngineError> {
        let mut shown = Vec::new();
        for (n, part) in self.cut.parts.iter().enumerate() {
            let images = self.normalised(n, 0, part.labelled.len() + 2 * part.unlabelled.len())?;
            let seen = self.pass(n, &images, Norm::Learn)?;
            shown.push(Shown { images, seen });
        }
        let tasks = self.ask(Asked::Plan, &shown, plan)?;
        let mut terms = self.base_terms(&shown, &tasks)?;
        if !tasks.mixing {
            return Ok(terms);
        }
        match self.method.base_loss {
            BaseLoss::Once => {
                for (n, task) in tasks.parts.iter().enumerate().filter(|(_, task)| !task.mixes.is_empty()) {
                    let logits = self.pass(n, &self.mixed(task)?, Norm::Watch)?.logits;
                    terms[n].mix = self.weighing().mix(&logits, task)?;
                }
            }
            BaseLoss::Twice => {
                for (n, task) in tasks.parts.iter().enumerate() {
                    let images = Tensor::f_cat(&[&shown[n].images, &self.mixed(task)?], 0)?;
                    shown[n].seen = self.pass(n, &images, Norm::Learn)?;
                }
                let again = self.ask(Asked::PseudoLabelsAgain, &shown, plan)?;
                let second = self.base_terms(&shown, &again)?;
                terms = terms.into_iter().zip(&second).map(|(a, b)| a.and(b)).collect::<Result<_, _>>()?;
                for ((n, task), part) in tasks.parts.iter().enumerate().zip(&self.cut.parts) {
                    let first = part.labelled.len() + 2 * part.unlabelled.len();
                    let logits = rows(&shown[n].seen.logits, first, task.mixes.len())?;
                    if !task.mixes.is_empty() {
                        terms[n].mix = self.weighing().mix(&logits, task)?;
                    }
                }
            }
        }
        Ok(terms)
    }

    fn lean(
        &mut self,
        plan: &mut impl FnMut(Asked, &Observation<'_>) -> Result<Tasks, PlanError>,
    ) -> Result<Vec<Terms>, EngineError> {
        let tasks = {
            let _no_gradient = tch::no_grad_guard();
            let watch = |(n, part): (usize, &Part)| -> Result<Shown, EngineError> {
                let images = self.normalised(n, 0, part.labelled.len() + part.unlabelled.len())?;
                let seen = self.pass(n, &images, Norm::Watch)?;
                Ok(Shown { images, seen })
            };
            let shown = self.cut.parts.iter().enumerate().map(watch).collect::<Result<Vec<_>, _>>()?;
            self.ask(Asked::Plan, &shown, plan)?
        };
        let mut terms = Vec::new();
        for ((n, part), task) in self.cut.parts.iter().enumerate().zip(&tasks.parts) {
            let (x, u, mixes) = (part.labelled.len(), part.unlabelled.len(), task.mixes.len());
            let (labelled, strong) = (self.normalised(n, 0, x)?, self.normalised(n, x + u, u)?);
            let images = Tensor::f_cat(&[&labelled, &self.mixed(task)?, &strong], 0)?;
            let logits = self.pass(n, &images, Norm::Learn)?.logits;
            let labels = self.labels(part);
            let mut of_part = self.weighing().base(&logits, labels, &task.pseudo, x + mixes)?;
            if mixes > 0 {
                of_part.mix = self.weighing().mix(&rows(&logits, x, mixes)?, task)?;
            }
            terms.push(of_part);
        }
        Ok(terms)
    }

    /// The base terms of parts whose batches begin with `[x; u_weak; u_strong]`.
    fn base_terms(&self, shown: &[Shown], tasks: &Tasks) -> Result<Vec<Terms>, TchError> {
        let parts = self.cut.parts.iter().zip(shown).zip(&tasks.parts);
        parts
            .map(|((part, shown), task)| {
                let strong = part.labelled.len() + part.unlabelled.len();
                self.weighing().base(&shown.seen.logits, self.labels(part), &task.pseudo, strong)
            })
            .collect()
    }

    fn pass(&self, part: usize, images: &Tensor, norm: Norm) -> Result<Output, TchError> {
        self.model.forward(images, &self.statistics[part], norm)
    }

    fn weighing(&self) -> Weighing<'_> {
        Weighing { method: self.method, cut: self.cut, device: self.model.device }
    }

    fn labels(&self, part: &Part) -> &'a [u32] {
        self.batch.labelled.labels.get(part.labelled.clone()).unwrap_or_default()
    }

    /// Rows of `[x; u_weak; u_strong]` of a part.
    fn normalised(&self, part: usize, start: usize, count: usize) -> Result<Tensor, TchError> {
        self.images.normalised(&self.model.normaliser, self.first(part) + start, count)
    }

    /// Where the images of a part begin.
    fn first(&self, part: usize) -> usize {
        let before = self.cut.parts.get(..part).unwrap_or_default();
        before.iter().map(|part| part.labelled.len() + 2 * part.unlabelled.len()).sum()
    }

    fn mixed(&self, task: &Task) -> Result<Tensor, TchError> {
        let borrowed = self.first(self.cut.parts.len());
        let within = |holds: &dyn Fn(&Part) -> bool| {
            let n = self.cut.parts.iter().position(holds).unwrap_or(0);
            (self.first(n), &self.cut.parts[n])
        };
        self.images.mixed(&self.model.normaliser, &task.mixes, |image| match image {
            Image::Labelled(i) => {
                let (first, part) = within(&|part| part.labelled.contains(&i));
                first + i - part.labelled.start
            }
            Image::Weak(j) => {
                let (first, part) = within(&|part| part.unlabelled.contains(&j));
                first + part.labelled.len() + j - part.unlabelled.start
            }
            Image::Borrowed(n) => borrowed + n,
        })
    }

    /// Shows the plan what the network said about `[x; u_weak]`, which stand first in each part, and checks that the
    /// answer fits. The plan is asked even about numbers that are not finite: in a group of several processes all of
    /// them ask at the same time.
    fn ask(
        &mut self,
        asked: Asked,
        shown: &[Shown],
        plan: &mut impl FnMut(Asked, &Observation<'_>) -> Result<Tasks, PlanError>,
    ) -> Result<Tasks, EngineError> {
        let guidance = self.method.mixup.as_ref().and_then(|mixup| mixup.pairing.guidance());
        let space = guidance.map(|guidance| guidance.space);
        let mut told = Told::default();
        for (part, Shown { images, seen }) in self.cut.parts.iter().zip(shown) {
            let (x, u) = (part.labelled.len(), part.unlabelled.len());
            let features = match space {
                Some(Space::Feature) => Some(rows(&seen.features, 0, x + u)?),
                Some(Space::Pixel) => {
                    let pixels = rows(images, 0, x + u)?.f_permute([0, 2, 3, 1])?;
                    Some(pixels.f_reshape([(x + u) as i64, -1])?)
                }
                Some(Space::Logit) | None => None,
            };
            told.logits.add(&rows(&seen.logits, 0, x + u)?, x)?;
            if let Some(features) = features {
                told.features.add(&features, x)?;
            }
        }
        let (x, u) = self.batch.rows();
        let (labelled, unlabelled) = (&self.batch.labelled, &self.batch.unlabelled);
        let observation = Observation {
            labelled: Rows {
                ids: labelled.ids,
                logits: matrix(&told.logits.labelled, x, told.logits.width)?,
                features: matrix(&told.features.labelled, x, told.features.width)?,
            },
            labels: labelled.labels,
            unlabelled: Rows {
                ids: unlabelled.ids,
                logits: matrix(&told.logits.unlabelled, u, told.logits.width)?,
                features: matrix(&told.features.unlabelled, u, told.features.width)?,
            },
        };
        let tasks = plan(asked, &observation);
        let logits = told.logits.labelled.iter().chain(&told.logits.unlabelled);
        let elsewhere = matches!(&tasks, Err(PlanError::Observation(ObservationError::NotFinite { .. })));
        if elsewhere || !logits.copied().all(f32::is_finite) {
            return Err(EngineError::NotFinite { step: self.batch.step, what: "output of the network" });
        }
        let mut tasks = tasks?;
        tasks.check(&self.cut.parts, told.logits.width, self.model.size.bytes())?;
        if !tasks.borrowed.is_empty() {
            let borrowed = std::mem::take(&mut tasks.borrowed);
            let more = Images::upload(&[&borrowed], self.model.size, self.model.device)?;
            self.images.append(&more)?;
        }
        Ok(tasks)
    }
}

/// What was fetched from the device, row by row.
#[derive(Default)]
struct Told {
    logits: HostRows,
    features: HostRows,
}

/// Rows of numbers of all parts: labelled ones, unlabelled ones.
#[derive(Default)]
struct HostRows {
    labelled: Vec<f32>,
    unlabelled: Vec<f32>,
    width: usize,
}

impl HostRows {
    /// Fetches the rows of a part, of which the first `labelled` are labelled.
    fn add(&mut self, tensor: &Tensor, labelled: usize) -> Result<(), TchError> {
        self.width = tensor.size().get(1).map_or(0, |&width| width as usize);
        let numbers = Vec::<f32>::try_from(&tensor.f_detach()?.f_contiguous()?.f_view([-1])?)?;
        let (first, rest) = numbers.split_at(numbers.len().min(labelled * self.width));
        self.labelled.extend_from_slice(first);
        self.unlabelled.extend_from_slice(rest);
        Ok(())
    }
}

fn matrix(numbers: &[f32], rows: usize, width: usize) -> Result<Matrix<'_>, EngineError> {
    Matrix::new(numbers, rows, width).map_err(|error| EngineError::Misfit(error.to_string()))
}
