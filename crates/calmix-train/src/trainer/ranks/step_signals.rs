//! The signals that processes exchange in each step: requests to stop, and which process is late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use calmix_dist::ProcessGroup;
use calmix_run::events::Note;

use super::sync::{Heartbeat, StragglerDetector};

/// The signals of one process, from step to step.
pub(crate) struct StepSignals<'a> {
    stop: &'a AtomicBool,
    /// Whether a process received a request to stop, as all know since the last step.
    stop_heard: bool,
    /// How long the last step took, without waiting for other processes.
    busy: Duration,
    stragglers: StragglerDetector,
}

impl<'a> StepSignals<'a> {
    /// Before the first step. `stop` becomes true when this process receives a request to stop.
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, stop_heard: false, busy: Duration::ZERO, stragglers: StragglerDetector::default() }
    }

    /// What this process tells the others in a step.
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        Heartbeat { stop: self.stop.load(Ordering::Relaxed), busy: self.busy, ..Heartbeat::default() }
    }

    /// Reads the heartbeats of all processes, which run as many `shards` each; returns a warning if one is a straggler.
    pub(crate) fn read(&mut self, heartbeats: &[Heartbeat], shards: &[usize]) -> Option<Note> {
        self.stop_heard |= heartbeats.iter().any(|beat| beat.stop);
        self.stragglers.update(heartbeats, shards)
    }

    /// Takes how long this process worked on a step.
    pub(crate) fn worked(&mut self, busy: Duration) {
        self.busy = busy;
    }

    /// Whether the run has to stop before the next step. Several processes stop at the step after the one in which all
    /// received the request.
    pub(crate) fn stop_requested(&self, processes: &ProcessGroup) -> bool {
        if processes.size() == 1 { self.stop.load(Ordering::Relaxed) } else { self.stop_heard }
    }

    /// Becomes true when this process receives a request to stop.
    pub(crate) fn stop(&self) -> &'a AtomicBool {
        self.stop
    }
}
