//! Counts work of a run, and passes its progress on.

use std::time::Instant;

use calmix_run::sink::{Work, WorkProgress};

/// Receives the progress of work.
pub type TellWork<'a> = &'a dyn Fn(&WorkProgress);

/// Receives no progress.
pub fn ignore_progress(_: &WorkProgress) {}

/// A count of some work since its start.
pub struct WorkCount<'a> {
    tell: TellWork<'a>,
    progress: WorkProgress,
    start: Instant,
}

impl<'a> WorkCount<'a> {
    /// Begins the work, of which `total` is to be done, and passes that on at once: the first part may take long. If nothing
    /// is to be done, nothing is passed on.
    pub fn begin(tell: TellWork<'a>, work: Work, total: u64) -> Self {
        let progress = WorkProgress { work, done: 0, total, seconds: 0.0 };
        if total > 0 {
            tell(&progress);
        }
        Self { tell, progress, start: Instant::now() }
    }

    /// Counts what was done, at most the total.
    pub fn add(&mut self, done: u64) {
        let WorkProgress { done: before, total, .. } = self.progress;
        self.progress.done = (before + done).min(total);
        self.progress.seconds = self.start.elapsed().as_secs_f64();
        (self.tell)(&self.progress);
    }
}
