//! The pool under shuttle, which runs its threads in thousands of orders. Waits do not time out there, so a missing
//! notification is a deadlock, which shuttle reports with the order that leads to it.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{Job, WorkerPool};
use crate::error::DataError;
use crate::loader::{Tally, Workers};

/// The number of orders of each kind to try for each number of workers and slots.
const ORDERS: usize = 2_000;
const STEPS: u64 = 3;
/// More than a worker claims at a time, so that several make a batch.
const ROWS: usize = 12;

/// A job whose rows are numbers.
struct Numbers {
    /// The row that fails.
    bad: Option<(u64, usize)>,
}

fn number(step: u64, row: usize) -> u64 {
    100 * step + row as u64
}

fn batch(step: u64) -> Vec<u64> {
    (0..ROWS).map(|row| number(step, row)).collect()
}

impl Job for Numbers {
    type Batch = Vec<u64>;
    type Made = u64;
    type WorkerState = ();

    fn steps(&self) -> Range<u64> {
        0..STEPS
    }

    fn rows(&self, _: u64) -> usize {
        ROWS
    }

    fn bytes(&self) -> usize {
        1
    }

    fn worker_state(&self) {}

    fn open(&self, _: u64, batch: &mut Vec<u64>) {
        *batch = vec![u64::MAX; ROWS];
    }

    fn make(
        &self,
        (step, row): (u64, usize),
        (): &mut (),
        _: &AtomicU64,
        _: &mut [u8],
    ) -> Result<u64, DataError> {
        if self.bad == Some((step, row)) {
            return Err(DataError::NoWorkers { step: number(step, row) });
        }
        Ok(number(step, row))
    }

    fn store(&self, row: usize, made: u64, _: &[u8], batch: &mut Vec<u64>) {
        batch[row] = made;
    }

    fn count(&self, batch: &Vec<u64>, _: &mut Tally) -> Result<usize, DataError> {
        Ok(batch.len())
    }
}

/// Runs a pool in many orders, with 1 to 3 workers and 1 or 2 slots.
fn in_many_orders(bad: Option<(u64, usize)>, consume: fn(WorkerPool<Numbers>)) {
    for threads in 1..=3 {
        for prefetch in 1..=2 {
            let run = move || {
                let [threads, prefetch] = [threads, prefetch].map(|n| NonZeroUsize::new(n).unwrap());
                let workers = Workers { threads, prefetch, ..Workers::default() };
                consume(WorkerPool::start(Numbers { bad }, workers, Tally::default()).unwrap());
            };
            shuttle::check_random(run, ORDERS);
            // Few thread switches, at the least likely places.
            shuttle::check_pct(run, ORDERS, 3);
        }
    }
}

#[test]
fn batches_arrive_whole_and_in_order() {
    in_many_orders(None, |mut pool| {
        for step in 0..STEPS {
            assert_eq!(*pool.next(&mut || false).unwrap().unwrap(), batch(step));
        }
        assert!(pool.next(&mut || false).is_none());
    });
}

#[test]
fn pool_ends_while_workers_are_busy() {
    in_many_orders(None, |mut pool| {
        assert_eq!(*pool.next(&mut || false).unwrap().unwrap(), batch(0));
    });
}

#[test]
fn failure_comes_after_the_batches_before_it() {
    in_many_orders(Some((1, 9)), |mut pool| {
        assert_eq!(*pool.next(&mut || false).unwrap().unwrap(), batch(0));
        let failed = pool.next(&mut || false).unwrap().unwrap_err();
        assert!(matches!(failed, DataError::NoWorkers { step: 109 }), "{failed}");
        assert!(pool.next(&mut || false).is_none());
    });
}
