//! The training of one head: draw a batch, observe, plan, learn, commit.

mod batch;

use std::thread;

use calmix_core::loss::LossTerm;
use calmix_core::matrix::Matrix;
use calmix_core::mixup::Row;
use calmix_core::mixup::pair::Space;
use calmix_core::observation::{Observation, Rows};
use calmix_core::plan::StepPlan;
use calmix_core::planner::Planner;
use calmix_core::schedule::RunStep;
use calmix_metrics::margins::Margins;
use calmix_metrics::margins::SampleMargins;
use calmix_metrics::pseudo_labels::PseudoSums;

use crate::error::HeadError;
use crate::loss::{LossRows, Losses};
use crate::network::{Head, HeadOutput, HeadShape};
use crate::progress::FitProgress;
use crate::projection::scale_to_unit_length;
use crate::samples::{HeadSamples, TrainingRows};
use crate::settings::HeadSettings;
use batch::{Batch, Batches, StepBatches};

/// A trained head.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedHead {
    /// The exponential moving average of the weights, which predicts.
    pub ema: Head,
    /// The weights after the last step.
    pub weights: Head,
    /// Metrics of the logged steps.
    pub log: Vec<StepLog>,
    /// The margins of all samples, if the method uses them.
    pub margins: SampleMargins,
}

/// Metrics of one training step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLog {
    /// The step, from 0.
    pub step: u64,
    /// The learning rate.
    pub rate: f64,
    /// Each term of the loss before its weight, in the order of the method's terms.
    pub losses: Vec<f64>,
    /// The weighted sum of the terms.
    pub total: f64,
    /// The norm of the gradient, before it was clipped.
    pub gradient_norm: f64,
    /// The mean weight of the unlabelled rows; `None` if there are none.
    pub utilisation: Option<f64>,
    /// The number of mixtures.
    pub mixtures: usize,
    /// The mean margins of the easy and the hard rows, if the method uses them.
    pub margins: Option<Margins>,
    /// The quality of the pseudo-labels whose classes are known: of this step, or in a log entry of all steps since the last one.
    pub pseudo: PseudoSums,
}

/// Trains one head. The same input gives the same bits on every processor with fused multiply-add.
///
/// # Errors
/// If the input contradicts itself, a number is not finite, or the fit has to stop.
pub fn train(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    settings: &HeadSettings,
    progress: &FitProgress<'_>,
) -> Result<TrainedHead, HeadError> {
    settings.check()?;
    samples.check(rows)?;
    train_checked(samples, rows, settings, progress)
}

/// Trains like [`train`], on checked input: a check reads all vectors, which would be repeated for every fold.
pub(crate) fn train_checked(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    settings: &HeadSettings,
    progress: &FitProgress<'_>,
) -> Result<TrainedHead, HeadError> {
    let Training { batches, mut learner } = Training::start(samples, rows, settings)?;
    let mut log = Vec::new();
    let mut pseudo = PseudoSums::default();
    thread::scope(|scope| {
        let mut batches = StepBatches::new(batches, settings.steps, scope);
        for step in 0..settings.steps {
            progress.check_stop()?;
            batches.next(&mut learner.batch)?;
            let entry = learner.learn(step)?;
            progress.step();
            if settings.log_every > 0 {
                pseudo.add_numbers(&entry.pseudo.numbers());
                if (step + 1).is_multiple_of(settings.log_every) || step + 1 == settings.steps {
                    log.push(StepLog { pseudo: std::mem::take(&mut pseudo), ..entry });
                }
            }
        }
        Ok::<(), HeadError>(())
    })?;
    let margins = SampleMargins::of(&learner.planner.labelled, &learner.planner.samples);
    let Optimiser { weights, ema, .. } = learner.optimiser;
    Ok(TrainedHead { ema, weights, log, margins })
}

/// A head in training, step by step.
pub struct Training<'a> {
    batches: Batches<'a>,
    learner: Learner,
}

/// The state that a step updates: that of the method, the weights, and the last batch.
struct Learner {
    settings: HeadSettings,
    terms: Vec<LossTerm>,
    planner: Planner,
    optimiser: Optimiser,
    batch: Batch,
    last: StepTrace,
}

/// Intermediate results of a step, for comparison with another implementation.
#[derive(Debug, Clone, Default)]
pub struct StepTrace {
    /// The inputs of the loss: labelled rows, mixtures, strong rows.
    pub inputs: Vec<f32>,
    /// The plan of the step.
    pub plan: StepPlan,
    /// The gradient with respect to all weights, before clipping and decay.
    pub gradient: Vec<f32>,
}

impl<'a> Training<'a> {
    /// Prepares the training of a head.
    ///
    /// # Errors
    /// If a setting does not apply to heads, or the input contradicts itself.
    pub fn new(
        samples: HeadSamples<'a>,
        rows: &'a TrainingRows,
        settings: &HeadSettings,
    ) -> Result<Self, HeadError> {
        settings.check()?;
        samples.check(rows)?;
        Self::start(samples, rows, settings)
    }

    fn start(
        samples: HeadSamples<'a>,
        rows: &'a TrainingRows,
        settings: &HeadSettings,
    ) -> Result<Self, HeadError> {
        let classes = samples.classes.len();
        let shape = HeadShape { width: samples.width(), hidden: settings.hidden, classes };
        let labelled: Vec<u64> = rows.labelled.iter().map(|&row| samples.ids[row]).collect();
        let unlabelled = if settings.unlabelled_batch == 0 { 0 } else { rows.unlabelled.len() };
        let learner = Learner {
            settings: *settings,
            terms: settings.method.loss_terms(),
            // The seed of the first group, as in training on images.
            planner: Planner::new(settings.method, classes, &labelled, unlabelled, settings.seed.child(0)),
            optimiser: Optimiser::new(Head::initial(shape, settings.seed)),
            batch: Batch::default(),
            last: StepTrace::default(),
        };
        Ok(Self { batches: Batches::new(samples, rows, settings)?, learner })
    }

    /// Returns the weights after the last step.
    pub fn weights(&self) -> &Head {
        &self.learner.optimiser.weights
    }

    /// Returns the exponential moving average of the weights.
    pub fn ema(&self) -> &Head {
        &self.learner.optimiser.ema
    }

    /// Returns the classes of the labelled rows of the last step.
    pub fn last_labels(&self) -> &[u32] {
        &self.learner.batch.labels
    }

    /// Returns the intermediate results of the last step.
    pub fn last(&self) -> &StepTrace {
        &self.learner.last
    }

    /// Trains on the batch of a step.
    ///
    /// # Errors
    /// If a vector cannot be read, or a number is not finite; the head is then unchanged.
    pub fn step(&mut self, step: u64) -> Result<StepLog, HeadError> {
        self.batches.draw(step, &mut self.learner.batch)?;
        self.learner.learn(step)
    }
}

impl Learner {
    /// Trains on the last batch.
    ///
    /// # Errors
    /// If a number is not finite; the head is then unchanged.
    fn learn(&mut self, step: u64) -> Result<StepLog, HeadError> {
        let settings = &self.settings;
        let at = RunStep { step, steps: settings.steps };
        let Self { batch, last, .. } = self;
        let observed = self.optimiser.weights.forward(&batch.weak)?;
        let space = settings.method.similarity_space();
        let observation = observation(batch, &observed, self.optimiser.weights.shape(), space)?;
        let planned = self.planner.plan(&observation, &batch.slots, at)?;

        let width = self.optimiser.weights.shape().width;
        set_inputs(batch, &planned.plan, width, settings.method.mixup.unit_length, &mut last.inputs);
        let output = self.optimiser.weights.forward(&last.inputs)?;
        let rows = LossRows {
            classes: self.optimiser.weights.shape().classes,
            labels: &batch.labels,
            plan: &planned.plan,
            smoothing: settings.method.smoothing,
            logits: &output.logits,
        };
        let Losses { terms, total, by_logits } = rows.losses(&self.terms);
        last.gradient = self.optimiser.weights.backward(&last.inputs, &output, &by_logits);
        let gradient_norm = norm(&last.gradient);
        if !total.is_finite() || !gradient_norm.is_finite() {
            self.planner.undo();
            let what = if total.is_finite() { "gradient" } else { "loss" };
            return Err(HeadError::NotFinite { step, what });
        }
        let rate = settings.schedule.at(at, settings.lr);
        self.optimiser.step(settings, rate, gradient_norm, &last.gradient);
        last.plan = self.planner.commit(planned);
        let is_logged = settings.log_every > 0;
        let pseudo =
            is_logged.then(|| PseudoSums::of(&last.plan, observation.unlabelled.logits, &batch.truth));
        Ok(StepLog {
            step,
            rate,
            losses: terms,
            total,
            gradient_norm,
            utilisation: last.plan.feedback.utilisation.mean(),
            mixtures: last.plan.mixes.len(),
            margins: last.plan.difficulty.as_ref().map(Margins::of),
            pseudo: pseudo.unwrap_or_default(),
        })
    }
}

/// Keeps the divisor of a clipped gradient away from zero, as PyTorch's `clip_grad_norm_` does.
const CLIP_FLOOR: f64 = 1e-6;

/// The weights of a head in training, with their moving average and momentum.
#[derive(Debug, Clone, PartialEq)]
struct Optimiser {
    weights: Head,
    ema: Head,
    velocity: Vec<f32>,
}

impl Optimiser {
    fn new(head: Head) -> Self {
        let velocity = vec![0.0; head.numbers().len()];
        Self { ema: head.clone(), weights: head, velocity }
    }

    /// Updates weights and moving average with a gradient of the given norm.
    ///
    /// `g += decay·p; v = momentum·v + g; p −= rate·(g + momentum·v)`; without Nesterov, `p −= rate·v`.
    fn step(&mut self, settings: &HeadSettings, rate: f64, norm: f64, gradient: &[f32]) {
        let clipped = settings.clip.filter(|&limit| norm > limit);
        let factor = clipped.map_or(1.0, |limit| (limit / (norm + CLIP_FLOOR)) as f32);
        let momentum = settings.momentum as f32;
        let rate = rate as f32;
        let ema_rate = (1.0 - settings.ema_decay) as f32;
        let decayed = self.weights.shape().decayed();
        let weights = self.weights.numbers_mut().iter_mut().zip(self.ema.numbers_mut());
        for (n, (((weight, ema), velocity), gradient)) in
            weights.zip(&mut self.velocity).zip(gradient).enumerate()
        {
            let decay = if n < decayed { settings.weight_decay as f32 } else { 0.0 };
            let gradient = gradient * factor + decay * *weight;
            *velocity = momentum * *velocity + gradient;
            let direction = if settings.nesterov { gradient + momentum * *velocity } else { *velocity };
            *weight -= rate * direction;
            *ema += ema_rate * (*weight - *ema);
        }
    }
}

/// Computes the Euclidean norm, in f64.
fn norm(gradient: &[f32]) -> f64 {
    libm::sqrt(calmix_core::lanes::sum(gradient, |number| f64::from(number) * f64::from(number)))
}

/// Returns the network's outputs for a batch, as the method expects them.
fn observation<'a>(
    batch: &'a Batch,
    output: &'a HeadOutput,
    shape: HeadShape,
    space: Option<Space>,
) -> Result<Observation<'a>, HeadError> {
    let labelled = batch.labelled_ids.len();
    let unlabelled = batch.unlabelled_ids.len();
    let all = labelled + unlabelled;
    let (features, width) = match space {
        Some(Space::Feature) => (output.hidden.as_deref().unwrap_or(&batch.weak), shape.features()),
        _ => (&[][..], 0),
    };
    let misfit = |_| HeadError::Input("the rows of a batch do not fit".to_owned());
    let logits = Matrix::new(&output.logits, all, shape.classes).map_err(misfit)?;
    let features = Matrix::new(features, all, width).map_err(misfit)?;
    Ok(Observation {
        labelled: Rows {
            ids: &batch.labelled_ids,
            logits: logits.range(0..labelled),
            features: features.range(0..labelled),
        },
        labels: &batch.labels,
        unlabelled: Rows {
            ids: &batch.unlabelled_ids,
            logits: logits.range(labelled..all),
            features: features.range(labelled..all),
        },
    })
}

/// Writes the inputs of the loss: labelled rows, mixtures, strong rows.
fn set_inputs(batch: &Batch, plan: &StepPlan, width: usize, unit_length: bool, inputs: &mut Vec<f32>) {
    let labelled = batch.labelled_ids.len();
    let vector = |row: Row| {
        let row = match row {
            Row::Labelled(i) => i,
            Row::Unlabelled(j) => labelled + j,
        };
        &batch.weak[row * width..(row + 1) * width]
    };
    inputs.clear();
    inputs.extend_from_slice(&batch.weak[..labelled * width]);
    for mix in &plan.mixes {
        let pair = vector(mix.a).iter().zip(vector(mix.b));
        let begin = inputs.len();
        inputs.extend(pair.map(|(a, b)| mix.lambda * a + (1.0 - mix.lambda) * b));
        if unit_length {
            scale_to_unit_length(&mut inputs[begin..]);
        }
    }
    inputs.extend_from_slice(&batch.strong);
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_core::mixup::Mix;

    #[test]
    fn mixtures_have_unit_length_on_request() {
        let batch = Batch {
            labelled_ids: vec![1],
            weak: vec![0.6, 0.8, 0.0, -1.0],
            strong: vec![1.0, 0.0],
            ..Batch::default()
        };
        let mix = Mix {
            a: Row::Labelled(0),
            b: Row::Unlabelled(0),
            lambda: 0.5,
            class_a: 0,
            class_b: 1,
            weight: 1.0,
        };
        let plan = StepPlan { mixes: vec![mix], ..StepPlan::default() };
        let inputs = |unit_length| {
            let mut inputs = Vec::new();
            set_inputs(&batch, &plan, 2, unit_length, &mut inputs);
            inputs
        };
        let near = |found: Vec<f32>, expected: [f32; 6]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        };
        near(inputs(false), [0.6, 0.8, 0.3, -0.1, 1.0, 0.0]);
        // √(0.3² + 0.1²) = 0.316228.
        near(inputs(true), [0.6, 0.8, 0.948_683, -0.316_228, 1.0, 0.0]);
    }
}
