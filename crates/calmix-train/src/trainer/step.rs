//! One training step, and its phases, by which a debugger, a profiler, or a test that injects a fault can follow it.

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
    /// Before the network runs on the batch.
    Observe,
    /// After the network ran; before its outputs are gathered and the step is planned.
    Plan,
    /// After planning; before gradients are computed and summed over all processes.
    Learn,
    /// Before a batch of an evaluation, or a replicate of its bootstrap.
    Evaluate,
    /// After the files of a checkpoint are written; before they are committed.
    Save,
}

/// A hook that is called before every phase of every step.
#[derive(Clone)]
pub(crate) struct Watch(pub(crate) Arc<dyn Fn(StepPhase, u64) + Send + Sync>);

impl Watch {
    /// Calls the hook before a phase of a step.
    pub(crate) fn enter(&self, phase: StepPhase, step: u64) {
        (self.0)(phase, step);
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self(Arc::new(|_, _| {}))
    }
}
