//! The part of a step's plans that this process executes, micro-batch by micro-batch.

use calmix_core::micro_batching::{MicroBatchRows, Partition};
use calmix_core::mixup::{Mix, Row};
use calmix_core::plan::StepPlan;
use calmix_core::pseudo::PseudoLabels;

use crate::error::EngineError;

/// The plans of a batch's micro-batches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LocalPlan {
    /// The plan of each micro-batch, in order.
    pub micro_batches: Vec<MicroBatchPlan>,
    /// The pixels of weak views that are mixed here and belong to a micro-batch of another process.
    pub partners: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct MicroBatchPlan {
    /// The label and the weight of each unlabelled row.
    pub pseudo: PseudoLabels,
    /// The pseudo-labels of the released code's second pass; `None` if there is none.
    pub second: Option<PseudoLabels>,
    pub mixes: Vec<Mixture>,
    /// ỹ of each mixture, C numbers per mixture.
    pub targets: Vec<f32>,
    /// Numbers that are summed over all micro-batches together with the gradient; every micro-batch has the same number.
    pub tally: Vec<f32>,
}

/// A mixture `λ·a + (1 − λ)·b` of two images of this process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture {
    /// The image with weight λ.
    pub a: Image,
    /// The image with weight 1 − λ.
    pub b: Image,
    pub lambda: f32,
    /// The weight of its loss.
    pub weight: f32,
}

/// An image of this process that can be mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// A labelled row of the batch.
    Labelled(usize),
    /// The weak view of an unlabelled row of the batch.
    Weak(usize),
    /// An image in [`LocalPlan::partners`], by its index.
    Partner(usize),
}

impl From<StepPlan> for LocalPlan {
    /// Converts the plan of a group that this process runs as one micro-batch.
    fn from(plan: StepPlan) -> Self {
        let image_of = |row| match row {
            Row::Labelled(i) => Image::Labelled(i),
            Row::Unlabelled(j) => Image::Weak(j),
        };
        let mixes = plan.mixes.iter().map(|mix| Mixture::of(mix, image_of)).collect();
        let StepPlan { pseudo, targets, .. } = plan;
        let whole = MicroBatchPlan { pseudo, mixes, targets, ..MicroBatchPlan::default() };
        Self { micro_batches: vec![whole], partners: Vec::new() }
    }
}

impl Mixture {
    /// Converts a mixture of a plan; `image_of` finds the image of a row.
    pub fn of(mix: &Mix, mut image_of: impl FnMut(Row) -> Image) -> Self {
        Self { a: image_of(mix.a), b: image_of(mix.b), lambda: mix.lambda, weight: mix.weight }
    }
}

impl LocalPlan {
    /// Checks that the plan of every micro-batch matches its rows, and that all rows it names exist.
    pub(crate) fn check(
        &self,
        partition: &Partition,
        classes: usize,
        image: usize,
    ) -> Result<(), EngineError> {
        let misfit = |sentence: String| Err(EngineError::Misfit(sentence));
        let micro_batches = &partition.micro_batches;
        let plans = &self.micro_batches;
        if plans.len() != micro_batches.len() {
            let (plans, count) = (plans.len(), micro_batches.len());
            return misfit(format!("plans for {plans} micro-batches, but there are {count}"));
        }
        let rows = |of: fn(&MicroBatchRows) -> usize| micro_batches.iter().map(of).max().unwrap_or(0);
        let (x, u) = (rows(|part| part.labelled.end), rows(|part| part.unlabelled.end));
        let partners = self.partners.len() / image.max(1);
        let exists = |image| match image {
            Image::Labelled(i) => i < x,
            Image::Weak(j) => j < u,
            Image::Partner(n) => n < partners,
        };
        let tally = plans.first().map_or(0, |plan| plan.tally.len());
        for (plan, part) in plans.iter().zip(micro_batches) {
            let MicroBatchPlan { pseudo, second, mixes, targets, .. } = plan;
            let u = part.unlabelled.len();
            for PseudoLabels { labels, weights, fairness_target } in [pseudo].into_iter().chain(second) {
                if labels.len() != u || weights.len() != u {
                    let (labels, weights) = (labels.len(), weights.len());
                    return misfit(format!("{labels} labels and {weights} weights for {u} rows"));
                }
                if !fairness_target.is_empty() && fairness_target.len() != classes {
                    return misfit(format!("a fairness target of {} classes", fairness_target.len()));
                }
                if let Some(label) = labels.iter().find(|&&label| label as usize >= classes) {
                    return misfit(format!("label {label}, but there are {classes} classes"));
                }
            }
            if let Some(mix) = mixes.iter().find(|mix| !exists(mix.a) || !exists(mix.b)) {
                return misfit(format!("a mixture of {:?} and {:?}", mix.a, mix.b));
            }
            if targets.len() != mixes.len() * classes {
                return misfit(format!("{} targets for {} mixtures", targets.len(), mixes.len()));
            }
            if plan.tally.len() != tally {
                return misfit(format!("tallies of {tally} and of {} numbers", plan.tally.len()));
            }
        }
        Ok(())
    }
}
