//! A method with all its state, for one process: visit, plan, commit.
//!
//! This is the case of one group in one micro-batch. The trainer makes the same calls distributed over many processes; a head
//! and the Python planner use this type.

use crate::error::CoreError;
use crate::method::feedback::Feedback;
use crate::method::{Method, MethodState};
use crate::observation::{Observation, PlanInput, RowMargins};
use crate::plan::{StepPlan, plan_step};
use crate::pseudo::PseudoLabels;
use crate::rng::Seed;
use crate::samples::LabelledSamples;
use crate::samples::{Samples, UnlabelledVisit};
use crate::schedule::RunStep;

/// A method with all its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Planner {
    /// The method that plans the steps.
    pub method: Method,
    /// The state of the method between steps.
    pub state: MethodState,
    /// The state of each labelled sample.
    pub labelled: LabelledSamples,
    /// The state of each unlabelled sample.
    pub samples: Samples,
    seed: Seed,
}

/// A plan that is not committed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The plan of the step.
    pub plan: StepPlan,
    state: MethodState,
    feedback: Feedback,
    step: u64,
}

impl Planner {
    /// Creates the state before the first step, for these labelled samples and unlabelled samples with slots below
    /// `unlabelled`.
    pub fn new(method: Method, classes: usize, labelled: &[u64], unlabelled: usize, seed: Seed) -> Self {
        Self {
            method,
            state: method.initial_state(classes, unlabelled as u64),
            labelled: LabelledSamples::new(&method, labelled),
            samples: Samples::new(&method, classes, [unlabelled]),
            seed,
        }
    }

    /// Plans a step. `slots` are the positions of the unlabelled rows' samples, below the number of unlabelled samples.
    /// The step takes effect with [`commit`](Self::commit); [`undo`](Self::undo) discards a plan that is not
    /// committed.
    ///
    /// # Errors
    /// As [`plan_step`], and if a sample is unknown; the state then stays as it was.
    pub fn plan(
        &mut self,
        batch: &Observation<'_>,
        slots: &[u64],
        at: RunStep,
    ) -> Result<Planned, CoreError> {
        let planned = self.visit_and_plan(batch, slots, at);
        if planned.is_err() {
            self.undo();
        }
        planned
    }

    fn visit_and_plan(
        &mut self,
        batch: &Observation<'_>,
        slots: &[u64],
        at: RunStep,
    ) -> Result<Planned, CoreError> {
        batch.check()?;
        let Self { method, labelled, samples, seed, .. } = self;
        let mut state = self.state.clone();
        let (x, u) = (&batch.labelled, &batch.unlabelled);
        let averages = method.averages_margins(at, &state);
        let UnlabelledVisit { apm, selected } =
            samples.visit_unlabelled(method, 0, slots, u.logits, averages)?;
        labelled.visit(x.ids, &batch.margins())?;
        let aum = labelled.aum(x.ids)?;
        let apm: Option<Vec<f64>> = apm.map(|apm| apm.into_iter().map(f64::from).collect());
        let margins = aum.as_deref().zip(apm.as_deref()).map(|(aum, apm)| RowMargins { aum, apm });
        let sums = method.base.sums(x.logits, u.logits);
        let input = PlanInput { observation: *batch, margins, sums: &sums };
        let plan = plan_step(method, &input, &mut state, *seed, at)?;
        let feedback = Feedback { selected, ..plan.feedback.clone() };
        Ok(Planned { plan, state, feedback, step: at.step })
    }

    /// Returns the pseudo-labels of the second pass, which the released code makes with its mixtures; the statistics are
    /// updated with the batch a second time.
    ///
    /// # Errors
    /// If the observation contradicts itself or is not finite.
    pub fn label_again(
        &self,
        planned: &mut Planned,
        batch: &Observation<'_>,
    ) -> Result<PseudoLabels, CoreError> {
        batch.check()?;
        let base = &self.method.base;
        let sums = base.sums(batch.labelled.logits, batch.unlabelled.logits);
        base.pseudo_label(batch.unlabelled.logits, &sums, &mut planned.state.base)
    }

    /// Commits the step: updates the state and returns the plan.
    pub fn commit(&mut self, planned: Planned) -> StepPlan {
        let Planned { plan, state, feedback, step } = planned;
        self.state = state;
        self.state.update(&self.method, step, &feedback);
        self.labelled.commit();
        self.samples.commit();
        plan
    }

    /// Discards the step.
    pub fn undo(&mut self) {
        self.labelled.undo();
        self.samples.undo();
    }
}
