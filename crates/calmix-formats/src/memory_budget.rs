//! A memory budget for large images and files, shared by all threads.
//!
//! An image may have 64 Mi pixels, its file 256 MiB, and each core has a thread: without a common limit, a dataset with a
//! few large images takes 192 MiB per thread for pixels, and more for files. Small images, the usual case, never wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The maximum number of pixels of an image that needs no share: 12 MB.
pub(crate) const SMALL_IMAGE: u64 = 4 << 20;
/// How long a thread waits for a share, which is longer than any share is held. It then continues without one, because a
/// stalled loader is worse than exceeding the budget.
const LEASE_TIMEOUT: Duration = Duration::from_secs(30);

/// Pixels of large images: together one image of the maximum size.
pub(crate) static PIXELS: Budget = Budget::new(SMALL_IMAGE, 64 << 20);
/// Bytes of large files: together one file of the maximum size. Taken before [`PIXELS`], so that threads cannot deadlock.
pub(crate) static ENCODED: Budget = Budget::new(4 << 20, 256 << 20);

/// An amount that all threads share.
#[derive(Debug)]
pub(crate) struct Budget {
    used: Mutex<u64>,
    freed: Condvar,
    small: u64,
    all: u64,
}

/// A share of a budget, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    amount: u64,
    from: &'static Budget,
}

impl Budget {
    const fn new(small: u64, all: u64) -> Self {
        Self { used: Mutex::new(0), freed: Condvar::new(), small, all }
    }

    /// Waits until the budget has room for `amount`; `None` for a small amount, which needs no share.
    pub(crate) fn lease(&'static self, amount: u64) -> Option<Lease> {
        if amount <= self.small {
            return None;
        }
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // A single holder is always admitted, whatever its size.
        let full = |used: &mut u64| *used > 0 && *used + amount > self.all;
        let waited = self.freed.wait_timeout_while(used, LEASE_TIMEOUT, full);
        *waited.unwrap_or_else(PoisonError::into_inner).0 += amount;
        Some(Lease { amount, from: self })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.from.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.amount;
        self.from.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn large_images_wait_for_each_other_and_small_ones_do_not() {
        static OWN: Budget = Budget::new(4, 64);
        let (now, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        let half = 32;
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let lease = OWN.lease(half).unwrap();
                    peak.fetch_max(now.fetch_add(half, Ordering::SeqCst) + half, Ordering::SeqCst);
                    assert!(OWN.lease(4).is_none(), "a small one waits for nothing");
                    thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(half, Ordering::SeqCst);
                    drop(lease);
                });
            }
        });
        assert_eq!(peak.into_inner(), 64);
        // A single lease is admitted, whatever its size.
        assert!(OWN.lease(128).is_some());
        assert_eq!(*OWN.used.lock().unwrap(), 0);
    }
}
