//! How many pixels of large pictures are in memory at a time, in all threads together.
//!
//! A picture may have 64 Mi pixels, and a loader a thread for each core: without a common limit a dataset of a few large
//! pictures takes 192 MiB a thread. Small pictures, which datasets are made of, never wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Pictures up to this many pixels do not count: 12 MB.
pub(super) const SMALL: u64 = 4 << 20;
/// Pixels of all others together: one picture of the largest size.
const ALL: u64 = 64 << 20;
/// How long a picture waits for its share. Longer than any picture is held; after it the picture is decoded all the
/// same, since a loader that stands still is worse.
const PATIENCE: Duration = Duration::from_secs(30);

static BUDGET: Budget = Budget { used: Mutex::new(0), freed: Condvar::new() };

#[derive(Debug)]
struct Budget {
    used: Mutex<u64>,
    freed: Condvar,
}

/// The share of a large picture, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    pixels: u64,
    from: &'static Budget,
}

/// Waits until there is room for a picture of so many pixels; none for a small one.
pub(super) fn lease(pixels: u64) -> Option<Lease> {
    BUDGET.lease(pixels)
}

impl Budget {
    fn lease(&'static self, pixels: u64) -> Option<Lease> {
        if pixels <= SMALL {
            return None;
        }
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |used: &mut u64| *used > 0 && *used + pixels > ALL;
        let waited = self.freed.wait_timeout_while(used, PATIENCE, full);
        *waited.unwrap_or_else(PoisonError::into_inner).0 += pixels;
        Some(Lease { pixels, from: self })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.from.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.pixels;
        self.from.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn large_pictures_wait_for_each_other_and_small_ones_do_not() {
        static OWN: Budget = Budget { used: Mutex::new(0), freed: Condvar::new() };
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let half = ALL / 2;
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let lease = OWN.lease(half).unwrap();
                    most.fetch_max(now.fetch_add(half, Ordering::SeqCst) + half, Ordering::SeqCst);
                    assert!(OWN.lease(SMALL).is_none(), "a small one waits for nothing");
                    thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(half, Ordering::SeqCst);
                    drop(lease);
                });
            }
        });
        assert_eq!(most.into_inner(), ALL);
        // One that is alone is never too large.
        assert!(OWN.lease(2 * ALL).is_some());
        assert_eq!(*OWN.used.lock().unwrap(), 0);
    }
}
