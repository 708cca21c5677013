//! One step of training: its phases, for a debugger, a profiler, or a test that injects a fault there.

pub(super) mod engine_setup;
pub(super) mod exchange;
pub(super) mod partners;
pub(super) mod step_stats;
pub(super) mod step_traffic;
pub(super) mod stepper;
pub(super) mod visits;

use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepPhase {
    /// The network is about to see the batch.
    Observe,
    /// It has seen the batch; processes are about to gather its outputs and to plan.
    Plan,
    /// The plan is made; gradients are about to be computed, and added up over all processes.
    Learn,
    /// A batch of an evaluation is about to be seen, or a replicate of its bootstrap to be drawn.
    Evaluate,
    /// The files of a checkpoint are written; they are about to be committed.
    Save,
}

/// A hook that is called before every phase of every step.
#[derive(Clone)]
pub(crate) struct Watch(pub(crate) Arc<dyn Fn(StepPhase, u64) + Send + Sync>);

impl Watch {
    /// The process is about to enter this phase of this step.
    pub(crate) fn enter(&self, phase: StepPhase, step: u64) {
        (self.0)(phase, step);
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self(Arc::new(|_, _| {}))
    }
}
