//! What a process is about to do, for whoever watches it: a debugger, a profiler, a test of what a fault does there.

use std::sync::Arc;

/// A moment of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The network is about to see the batch.
    Look,
    /// It has seen the batch; a plan is about to be made, which takes the other processes of the group.
    Plan,
    /// The plan is made; gradients are about to be taken, and added up over all processes.
    Add,
    /// The files of a checkpoint are written; they are about to be committed.
    Keep,
}

/// Who is told of the moments of each step.
#[derive(Clone)]
pub(super) struct Watch(pub(super) Arc<dyn Fn(Moment, u64) + Send + Sync>);

impl Watch {
    /// The process is about to do this in this step.
    pub(super) fn tell(&self, moment: Moment, step: u64) {
        (self.0)(moment, step);
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self(Arc::new(|_, _| {}))
    }
}
