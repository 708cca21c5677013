//! Updates the state of the samples of this process's rows, micro-batch by micro-batch.

use calmix_core::error::CoreError;
use calmix_core::method::{Method, MethodState};
use calmix_core::micro_batching::MicroBatchRows;
use calmix_core::pseudo::Sums;
use calmix_core::samples::{Samples, UnlabelledVisit};
use calmix_core::schedule::RunStep;
use calmix_data::loader::TrainBatch;
use calmix_engine::observe::Observed;

use crate::trainer::error::TrainError;

/// The data of this process's rows before the gather.
#[derive(Debug)]
pub(crate) struct BatchVisits {
    /// The unlabelled rows of each micro-batch.
    pub(crate) micro_batches: Vec<UnlabelledVisit>,
    /// Sums over the rows of each micro-batch.
    pub(crate) sums: Vec<Sums>,
    /// The margin of each labelled row.
    pub(crate) margins: Vec<f64>,
}

impl BatchVisits {
    /// Updates the state of the batch's unlabelled samples, which the process that draws them stores. Labelled samples are
    /// updated later, with the margins of all groups. If a number is not finite, nothing is updated: all processes undo the step
    /// then.
    pub(crate) fn make(
        samples: &mut Samples,
        method: &Method,
        state: &MethodState,
        at: RunStep,
        batch: &TrainBatch,
        observed: &Observed,
    ) -> Result<Self, TrainError> {
        let seen = observed.observation()?;
        let (is_finite, averages) = (observed.is_finite(), method.averages_margins(at, state));
        let mut visits = Self { micro_batches: Vec::new(), sums: Vec::new(), margins: seen.margins() };
        for (n, MicroBatchRows { labelled, unlabelled }) in
            observed.partition().micro_batches.iter().enumerate()
        {
            let (x, u) = (seen.labelled.range(labelled.clone()), seen.unlabelled.range(unlabelled.clone()));
            let slots = batch.unlabelled.slots.get(unlabelled.clone());
            let slots = slots.ok_or(CoreError::Damaged { what: "a batch without slots" })?;
            visits.sums.push(method.base.sums(x.logits, u.logits));
            visits.micro_batches.push(if is_finite {
                samples.visit_unlabelled(method, n, slots, u.logits, averages)?
            } else {
                UnlabelledVisit {
                    apm: averages.then(|| vec![0.0; slots.len()]),
                    ..UnlabelledVisit::default()
                }
            });
        }
        Ok(visits)
    }
}
