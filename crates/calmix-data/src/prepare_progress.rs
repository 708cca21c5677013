//! The progress of a preparation, readable from another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::outage::{Outage, Warn};

/// The number of image files or rows of vectors read so far, and the total. Sources of published files leave both at zero,
/// because they take only seconds.
#[derive(Debug, Default)]
pub struct PrepareProgress {
    done: AtomicU64,
    total: AtomicU64,
    /// The number of passes over the items.
    passes: AtomicU64,
    outage: Outage,
}

impl PrepareProgress {
    /// Returns the number of files read so far, and the total; the total is 0 until they have been counted.
    pub fn now(&self) -> (u64, u64) {
        let passes = self.passes.load(Ordering::Relaxed).max(1);
        (self.done.load(Ordering::Relaxed) / passes, self.total.load(Ordering::Relaxed))
    }

    /// Sets the callback for warnings about unavailable storage; only the first call has an effect.
    pub fn set_warn(&self, warn: Warn) {
        self.outage.set_warn(warn);
    }

    pub(crate) fn outage(&self) -> &Outage {
        &self.outage
    }

    pub(crate) fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Sets the total as [`expect`](Self::expect) does, for items that are read twice.
    pub(crate) fn expect_twice(&self, total: u64) {
        self.passes.store(2, Ordering::Relaxed);
        self.expect(total);
    }

    pub(crate) fn add(&self) {
        self.add_rows(1);
    }

    pub(crate) fn add_rows(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::PrepareProgress;

    #[test]
    fn what_is_read_twice_is_half_done_after_the_first_time() {
        let progress = PrepareProgress::default();
        progress.expect_twice(10);
        progress.add_rows(10);
        assert_eq!(progress.now(), (5, 10));
        progress.add_rows(10);
        assert_eq!(progress.now(), (10, 10));
    }
}
