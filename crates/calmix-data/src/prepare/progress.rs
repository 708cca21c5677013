//! How far a preparation is, for whoever watches it from another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::outage::{Outage, Warn};

/// Image files that were read, of so many. Sources that read published files leave it at zero: they take seconds.
#[derive(Debug, Default)]
pub struct PrepareProgress {
    done: AtomicU64,
    total: AtomicU64,
    outage: Outage,
}

impl PrepareProgress {
    /// Files that were read, and files that there are; the latter is 0 before they are counted.
    pub fn now(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Sets who hears of storage that does not answer; the first one stays.
    pub fn set_warn(&self, warn: Warn) {
        self.outage.set_warn(warn);
    }

    pub(crate) fn outage(&self) -> &Outage {
        &self.outage
    }

    pub(crate) fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    pub(crate) fn add(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}
