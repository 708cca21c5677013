//! The progress of a fit, and its stop flag.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::HeadError;

/// The progress and the stop flag of a fit. The training threads write the progress and read the flag; the waiting thread does
/// the reverse.
#[derive(Debug)]
pub struct FitProgress<'a> {
    stop: &'a AtomicBool,
    steps: AtomicU64,
    total: AtomicU64,
}

impl<'a> FitProgress<'a> {
    /// Creates the progress before the first step; the fit ends soon after `stop` becomes true.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, steps: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// Returns the number of steps that all heads have taken together.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the number of steps that all heads will have taken at the end; 0 before the fit has begun.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds steps that are known only after others were taken.
    pub(crate) fn extend(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks the stop flag; called in every iteration and block of rows, so that a fit ends within a fraction of a second.
    ///
    /// # Errors
    /// [`HeadError::Stopped`] if the fit has to stop.
    pub(crate) fn check_stop(&self) -> Result<(), HeadError> {
        check_stop(self.stop)
    }
}

/// Fails with [`HeadError::Stopped`] if the caller requested a stop.
pub(crate) fn check_stop(stop: &AtomicBool) -> Result<(), HeadError> {
    if stop.load(Ordering::Relaxed) { Err(HeadError::Stopped) } else { Ok(()) }
}
