//! Abandoning an evaluation when a run has to stop: all processes leave it at the same point. Also reports its progress.

use std::sync::atomic::{AtomicBool, Ordering};

use calmix_data::loader::Warn;
use calmix_dist::ProcessGroup;
use calmix_lifecycle::evaluation::ProgressFn;

use crate::trainer::error::TrainError;
use crate::trainer::step::{StepPhase, Watch};

/// The request to stop of this process, and the collectives that spread requests to all processes.
#[derive(Clone, Copy)]
pub(crate) struct EvalStop<'a> {
    pub(crate) requested: &'a AtomicBool,
    pub(crate) processes: &'a ProcessGroup,
    pub(crate) watch: &'a Watch,
    pub(crate) warn: &'a Warn,
    /// Receives the progress of the evaluation.
    pub(crate) work: ProgressFn<'a>,
    /// The number of steps so far.
    pub(crate) step: u64,
}

const STOP: u8 = 1;
const DONE: u8 = 2;

impl EvalStop<'_> {
    /// Fails if any process received a request to stop. All processes must call it the same number of times.
    ///
    /// # Errors
    /// [`LifecycleError::Stopped`](calmix_lifecycle::LifecycleError::Stopped) on all processes, or a lost process.
    pub(crate) fn check(&self) -> Result<(), TrainError> {
        self.watch.enter(StepPhase::Evaluate, self.step);
        match self.gather(false)? {
            (true, _) => Err(TrainError::stopped()),
            _ => Ok(()),
        }
    }

    /// Returns whether this process received a request to stop, so that it need not wait for its next batch.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Waits while rank 0 alone works and calls [`check`](Self::check) any number of times; returns when it calls
    /// [`done`](Self::done).
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(crate) fn wait_for_first(&self) -> Result<(), TrainError> {
        loop {
            match self.gather(false)? {
                (_, true) => return Ok(()),
                (true, _) => return Err(TrainError::stopped()),
                _ => {}
            }
        }
    }

    /// Lets the waiting ranks continue; called on rank 0.
    pub(crate) fn done(&self) -> Result<(), TrainError> {
        self.gather(true).map(drop)
    }

    /// Returns whether any process has to stop, and whether rank 0 is done.
    fn gather(&self, done: bool) -> Result<(bool, bool), TrainError> {
        let stop = self.is_requested();
        if self.processes.size() == 1 {
            return Ok((stop, done));
        }
        let flags = if stop { STOP } else { 0 } | if done { DONE } else { 0 };
        let all = self.processes.all_gather_bytes(&[flags])?;
        let says = |bytes: &Vec<u8>, what| bytes.iter().any(|byte| byte & what != 0);
        Ok((all.iter().any(|bytes| says(bytes, STOP)), all.first().is_some_and(|bytes| says(bytes, DONE))))
    }
}
